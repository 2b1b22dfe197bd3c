"""What another version wrote is never called damaged, and damage is never called a version."""

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from inspect_ai._util.zipfile import zipfile_compress_kwargs

from gta_bench.datasets.atomic import load_atomic
from gta_bench.errors import RunError
from gta_bench.records.steps import CallStep
from gta_bench.records.units import AtomicUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.directory import log_folder, open_run, read_manifest
from gta_bench.runs.imported import write_imported
from gta_bench.runs.logs import find_kept_units, list_logs, read_finished, read_units
from gta_bench.runs.verdicts import VERDICTS, append_verdicts, read_verdicts
from tests.builders import manifest, write_atomic

LATER = {"gta-bench": "99.0", "inspect_ai": "98.1"}
SAMPLE = "samples/0_epoch_1.json"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with one unit, made by later versions."""
    task = load_atomic(write_atomic(tmp_path / "data")).tasks["0"]
    trace = (CallStep(name="OCR", arguments={}),)
    folder = tmp_path / "run"
    made = open_run(folder, manifest(tasks=("0",), packages=LATER))
    write_imported(folder, made, [AtomicUnit(task=task, trace=trace)])
    return folder


def rewrite(run: Path, member: str, change: Callable[[Any], None]) -> str:
    """Change one JSON file inside the run's log; the archive stays whole."""
    (log,) = list_logs(log_folder(run))
    with ZipFile(log) as source:
        contents = {name: source.read(name) for name in source.namelist()}
    value = json.loads(contents[member])
    change(value)
    contents[member] = json.dumps(value).encode()
    with ZipFile(log, "w", **zipfile_compress_kwargs) as target:
        for name, data in contents.items():
            target.writestr(name, data)
    return log


def unknown_step(sample: Any) -> None:
    sample["store"]["UnitStore:steps"] = [{"type": "dance"}]


def other_sample(sample: Any) -> None:
    sample["epoch"] = "first"


def no_task(sample: Any) -> None:
    del sample["metadata"]["gta_task"]


@pytest.mark.parametrize("change", [unknown_step, other_sample, no_task])
def test_a_record_of_another_version_names_both_versions_and_nothing_is_to_be_removed(
    run: Path, change: Callable[[Any], None]
) -> None:
    """A changed schema was told as "is damaged … remove it", or was a traceback."""
    log = rewrite(run, SAMPLE, change)
    with pytest.raises(RunError) as caught:
        read_units(log_folder(run), ("0",), 1, AtomicUnit)
    said = str(caught.value)
    assert log in said
    assert "not damaged: do not remove it" in said
    assert "written by gta-bench 99.0, inspect_ai 98.1" in said
    assert (
        f"installed are gta-bench {version('gta-bench')}, inspect_ai {version('inspect_ai')}"
        in said
    )


def test_the_same_holds_for_summaries_and_for_what_finished_units_left(run: Path) -> None:
    rewrite(run, SAMPLE, unknown_step)
    with pytest.raises(RunError, match="do not remove it"):
        read_finished(log_folder(run))
    rewrite(run, "summaries.json", lambda rows: rows[0].pop("id"))
    with pytest.raises(RunError, match="do not remove it"):
        find_kept_units(log_folder(run))


@pytest.mark.parametrize("cut", [0, 60, -40])
def test_a_log_whose_archive_is_broken_is_damaged(run: Path, cut: int) -> None:
    (log,) = list_logs(log_folder(run))
    Path(log).write_bytes(Path(log).read_bytes()[:cut])
    with pytest.raises(RunError, match="is damaged"):
        find_kept_units(log_folder(run))


def test_a_changed_byte_inside_a_sample_is_damage(run: Path) -> None:
    (log,) = list_logs(log_folder(run))
    data = bytearray(Path(log).read_bytes())
    data[data.find(SAMPLE.encode()) + len(SAMPLE) + 20] ^= 0xFF
    Path(log).write_bytes(data)
    with pytest.raises(RunError, match="is damaged"):
        read_units(log_folder(run), ("0",), 1, AtomicUnit)


def test_a_sample_that_its_summary_names_but_the_archive_lacks_is_damage(run: Path) -> None:
    (log,) = list_logs(log_folder(run))
    copy = Path(log).with_suffix(".copy")
    with ZipFile(log) as source, ZipFile(copy, "w", **zipfile_compress_kwargs) as target:
        for name in source.namelist():
            if name != SAMPLE:
                target.writestr(name, source.read(name))
    shutil.move(copy, log)
    with pytest.raises(RunError, match="is damaged"):
        read_units(log_folder(run), ("0",), 1, AtomicUnit)


def test_a_verdict_of_another_version_is_not_to_be_removed(run: Path) -> None:
    key = VerdictKey(task="0", leaf="cp1", judge="j")
    append_verdicts(run, [VerdictRow(key=key, verdict=Scored(value=5, reason=""))])
    whole = (run / VERDICTS).read_bytes()
    (run / VERDICTS).write_bytes(whole.replace(b'"scored"', b'"sung"') + whole)
    with pytest.raises(RunError, match=r"line 1: .* do not remove it.*gta-bench 99\.0"):
        read_verdicts(run)
    (run / VERDICTS).write_bytes(b"{half\n" + whole)
    with pytest.raises(RunError, match=r"line 1: not valid JSON. Remove the line"):
        read_verdicts(run)


def test_a_manifest_of_another_version_names_both(run: Path) -> None:
    raw = json.loads((run / "run.json").read_bytes())
    (run / "run.json").write_text(json.dumps(raw | {"invented_later": 1}), encoding="utf-8")
    with pytest.raises(RunError, match=r"1 field cannot be read\. .*written by gta-bench 99\.0"):
        read_manifest(run)
