"""Units read by our reader and by Inspect's public one, in turn in one process: CPU time."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from inspect_ai._util.json import to_json_safe
from inspect_ai._util.zipfile import zipfile_compress_kwargs
from inspect_ai.log import (
    EvalSample,
    EvalSampleSummary,
    read_eval_log,
    read_eval_log_samples_by_id,
)
from inspect_ai.model import ChatMessage, ModelOutput

from gta_bench.records.units import AtomicUnit
from gta_bench.runs.log_layout import read_stored_samples
from gta_bench.runs.logs import list_logs, read_units
from gta_bench.runs.samples import TASK, UnitStore, read_unit_data
from tests.builders import atomic_task, write_atomic
from tests.tasks.test_atomic import CALCULATOR, DIALOGS, evaluate
from tests.tasks.test_atomic_step import native_call, said

pytestmark = pytest.mark.measure
TOOL_CALLS = 4
# What units are made of, and what Inspect cannot do without.
READ = {
    *("id", "epoch", "input", "target", "metadata", "store"),
    *("error", "total_time", "model_usage"),
}
EVENTS = {"events", "events_data"}
BATCH = 256


def talks(input: list[ChatMessage], *_: Any) -> ModelOutput:
    """Several calls of a tool, then an answer."""
    done = sum(message.role == "tool" for message in input)
    if done == TOOL_CALLS:
        return said("It is 42.")
    return native_call("Calculator", {"expression": f"6*7+{done}"})


def write_log(root: Path, units: int) -> Path:
    """A log of so many tasks, each a copy of one that was really evaluated."""
    task = atomic_task(tools=[CALCULATOR], dialogs=DIALOGS)
    data = write_atomic(root / "data", {"0": task}, toolmeta=[CALCULATOR])
    evaluate(data, root / "one", talks)
    (source,) = list_logs(root / "one" / "logs")
    header = read_eval_log(source, header_only=True)
    with ZipFile(source) as zipped:
        raw = zipped.read("samples/0_epoch_1.json")
        (summary,) = json.loads(zipped.read("summaries.json"))
    sample, found = json.loads(raw), []
    target = root / "logs" / Path(source).name
    target.parent.mkdir()
    with ZipFile(target, "w", **zipfile_compress_kwargs) as written:
        for number in range(units):
            task_record = {**sample["metadata"][TASK], "id": str(number)}
            record = {**sample, "id": str(number), "metadata": {TASK: task_record}}
            written.writestr(f"samples/{number}_epoch_1.json", json.dumps(record).encode())
            found.append(EvalSampleSummary.model_validate({**summary, "id": str(number)}))
        written.writestr("summaries.json", to_json_safe(found))
        start = {"version": header.version, "eval": header.eval, "plan": header.plan}
        written.writestr("_journal/start.json", to_json_safe(start))
        written.writestr("header.json", to_json_safe(header))
    print(f"a sample: {len(raw)} bytes, {target.stat().st_size / units:.0f} in the log", flush=True)
    return target


def by_inspect(
    log: str, keys: list[tuple[str, int]], fields: set[str], use: Callable[[EvalSample], object]
) -> int:
    """All samples by the public reader, a batch in memory at a time."""
    left_out = {*EvalSample.model_fields} - fields
    count = 0
    for start in range(0, len(keys), max(BATCH, len(keys) // 50)):
        batch = keys[start : start + max(BATCH, len(keys) // 50)]
        for sample in read_eval_log_samples_by_id(log, batch, exclude_fields=left_out):
            use(sample)
            count += 1
    return count


def test_the_public_reader_takes_more_than_twice_as_long(tmp_path: Path) -> None:
    """Should this fail, `runs/log_layout.py` can read by Inspect's own functions."""
    units = int(os.environ.get("GTA_UNITS", "10000"))
    rounds = int(os.environ.get("GTA_ROUNDS", "2"))
    log = str(write_log(tmp_path, units))
    names = [str(number) for number in range(units)]
    keys = [(name, 1) for name in names]
    ways: dict[str, Callable[[], int]] = {
        "ours, whole units": lambda: len(read_units(tmp_path / "logs", names, 1, AtomicUnit).units),
        "Inspect's, samples without events": lambda: by_inspect(
            log, keys, READ, lambda one: read_unit_data(one.store.items())
        ),
    }
    if os.environ.get("GTA_ALL_WAYS"):
        ways |= {
            "ours, samples with events": lambda: sum(1 for _ in read_stored_samples(log, keys)),
            "Inspect's, samples without events, store_as": lambda: by_inspect(
                log, keys, READ, lambda one: one.store_as(UnitStore).steps
            ),
            "Inspect's, samples with events": lambda: by_inspect(
                log, keys, READ | EVENTS, lambda one: read_unit_data(one.store.items())
            ),
        }
    taken = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            before = time.process_time()
            assert way() == units
            taken[name] = min(taken[name], time.process_time() - before)
            print(f"{name}: {taken[name]:.1f} s", flush=True)
    ours = taken["ours, whole units"]
    for name, seconds in taken.items():
        print(f"{units} units, {name}: {seconds:.1f} s CPU, {seconds / ours:.1f} of ours")
    assert taken["Inspect's, samples without events"] > 2 * ours
