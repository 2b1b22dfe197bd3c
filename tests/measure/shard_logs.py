"""Logs of shards without an evaluation: real samples, copied under other ids and epochs."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from inspect_ai._util.json import to_json_safe
from inspect_ai.log import read_eval_log

from gta_bench.records.attempts import AttemptLine, UnitKey
from gta_bench.running.leases import UNITS_PER_LEASE
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder, read_manifest, write_manifest
from gta_bench.runs.imported import write_imported
from gta_bench.runs.logs import ATTEMPTS, list_logs
from gta_bench.runs.merge import shards_folder
from gta_bench.runs.verdicts import VERDICTS
from tests.builders import atomic_task, write_atomic
from tests.measure.test_results_scale import LEAVES, TREE, format_verdict
from tests.metrics.test_comparability import manifest
from tests.metrics.workflow_units import unit
from tests.planning import planned

TASK_MARK, EPOCH_MARK = "<task>", "<epoch>"


def write_sharded_run(
    root: Path,
    *,
    tasks: int,
    epochs: int,
    real_tasks: int = 1,
    real_epochs: int = 1,
    agent: str = "gold",
) -> Path:
    """A run of so many tasks and epochs, all finished, in the shards of a plan for 8 places.

    So many real tasks and epochs are evaluated, and their samples are used again for the others.
    """
    out = root / "run"
    data = write_atomic(root / "data", {str(n): atomic_task() for n in range(real_tasks)})
    execute(*planned(data, "step", agent=agent, epochs=real_epochs), out, lambda _: None)
    copy_to_shards(out, tasks, epochs, real_tasks, real_epochs)
    return out


def write_judged_run(root: Path, *, tasks: int, epochs: int, repeats: int = 1) -> Path:
    """A Workflow run in shards, of one real unit for each task, with verdicts on each leaf."""
    out = root / "run"
    out.mkdir(parents=True)
    held = manifest(tasks=tuple(str(number) for number in range(tasks)))
    calls = [{"tool": "OCR", "status": "done", "seconds": 1.5}] * 3
    files = [{"path": "report.pdf", "digest": "0" * 64, "size": 1000}]
    trace = [{"step": "answer", "content": "It is in report.pdf. " * 20}]
    made = unit(calls=calls, deliverables=files, trace=trace)
    work = [
        made.model_copy(
            update={"task": made.task.model_copy(update={"id": name, "checkpoints": TREE})}
        )
        for name in held.spec.tasks
    ]
    write_manifest(out, held)
    write_imported(out, held, work)
    copy_to_shards(out, tasks, epochs, tasks, 1)
    with (out / VERDICTS).open("w", encoding="utf-8") as opened:
        for epoch in range(1, epochs + 1):
            for number, name in enumerate(held.spec.tasks):
                for place, leaf in enumerate(LEAVES):
                    for repeat in range(1, repeats + 1):
                        value = (number * 7 + place * 3 + epoch + repeat % 2) % 11
                        opened.write(format_verdict(name, epoch, leaf, "judge", repeat, value))
    return out


def copy_to_shards(out: Path, tasks: int, epochs: int, real_tasks: int, real_epochs: int) -> None:
    """Replace the log of a run by shards with so many tasks and epochs, copies of what it has."""
    (log,) = list_logs(log_folder(out))
    names = tuple(str(number) for number in range(tasks))
    kept = read_manifest(out).with_spec(tasks=names, epochs=epochs)
    write_manifest(out, kept)
    stamp, mode = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-00-00", kept.spec.mode
    count = max(16, -(-tasks * epochs // UNITS_PER_LEASE))
    with ZipFile(log) as zipped:
        summaries = json.loads(zipped.read("summaries.json"))
    real = {(str(one["id"]), one["epoch"]): one for one in summaries}
    for number in range(min(tasks, count)):
        folder = shards_folder(out, f"{stamp}_{mode}_x") / str(number)
        assert isinstance(folder, Path)
        folder.mkdir(parents=True)
        _write(
            Path(log),
            folder / f"{stamp}_{mode}_{number}.eval",
            {
                (task, epoch): real[str(int(task) % real_tasks), (epoch - 1) % real_epochs + 1]
                for task in names[number::count]
                for epoch in range(1, epochs + 1)
            },
        )
    Path(log).unlink()
    if (out / ATTEMPTS).is_file():
        _write_attempts(out / ATTEMPTS, [(task, n + 1) for task in names for n in range(epochs)])


def _write_attempts(file: Path, units: Iterable[UnitKey]) -> None:
    """Write one finished attempt at each of these units: its beginning and its end."""
    when = datetime.now(UTC)
    with file.open("wb") as opened:
        for task, epoch in units:
            begun = AttemptLine(
                task=task, epoch=epoch, attempt=f"{task:>011}{epoch:011}", when=when
            )
            for line in (begun, begun.model_copy(update={"end": "finished"})):
                opened.write(line.model_dump_json(exclude_defaults=True).encode() + b"\n")


def _write(source: Path, target: Path, units: Mapping[UnitKey, dict[str, Any]]) -> None:
    """Write a log of these units, each with the summary of the sample that it is a copy of."""
    header = read_eval_log(str(source), header_only=True)
    samples: dict[str, bytes] = {}
    found = []
    with (
        ZipFile(source) as zipped,
        ZipFile(target, "w", compression=ZIP_DEFLATED, compresslevel=1) as written,
    ):
        for (task, epoch), summary in units.items():
            name = f"samples/{summary['id']}_epoch_{summary['epoch']}.json"
            if name not in samples:
                samples[name] = _template(json.loads(zipped.read(name)))
            copied = f"samples/{task}_epoch_{epoch}.json"
            written.writestr(copied, _fill(samples[name], task, epoch))
            found.append(_fill(_template(summary), task, epoch))
        written.writestr("summaries.json", b"[" + b",".join(found) + b"]")
        header.eval.dataset.sample_ids = list(dict.fromkeys(task for task, _ in units))
        start = {"version": header.version, "eval": header.eval, "plan": header.plan}
        written.writestr("_journal/start.json", to_json_safe(start))
        written.writestr("header.json", to_json_safe(header))


def _template(record: dict[str, Any]) -> bytes:
    """Return a sample or summary as JSON, with marks in the places of its task and epoch."""
    marked = {**record, "id": TASK_MARK, "epoch": EPOCH_MARK}
    task = marked["metadata"]["gta_task"]
    if isinstance(task, dict):  # a summary has only the beginning of its text
        named = {"gta_task": {**task, "id": TASK_MARK}}
        marked["metadata"] = {**marked["metadata"], **named}
    return json.dumps(marked).encode()


def _fill(template: bytes, task: str, epoch: int) -> bytes:
    named = template.replace(TASK_MARK.encode(), task.encode())
    return named.replace(f'"{EPOCH_MARK}"'.encode(), str(epoch).encode())
