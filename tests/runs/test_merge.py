"""Merging shards: the same samples and metrics as in one log, and kills at every point."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai.log import (
    EvalLog,
    EvalSampleReductions,
    EvalSampleScore,
    read_eval_log,
    recompute_metrics,
)

from gta_bench.records.units import AtomicUnit
from gta_bench.runs.directory import log_folder, read_manifest
from gta_bench.runs.log_layout import read_stored_summaries
from gta_bench.runs.logs import find_kept_units, list_logs, read_units, unit_keys
from gta_bench.runs.merge import (
    MOST_UNITS,
    find_shards,
    is_part,
    merge_shards,
    merged_log_path,
    shards_folder,
)
from tests.conftest import REPOSITORY
from tests.measure.shard_logs import write_sharded_run

TASKS, EPOCHS = 20, 3


def merge(run: Path) -> Path:
    """Merge the shards as the end of a command does."""
    (log,) = merge_in_parts(run, most=MOST_UNITS)
    return log


def merge_in_parts(run: Path, *, most: int) -> list[Path]:
    """Merge the shards into logs of at most that many units."""
    spec, name = read_manifest(run).spec, find_shards(run)
    assert name is not None
    kept = find_kept_units(log_folder(run))
    chosen = {key: kept[key].log for key in unit_keys(spec.tasks, spec.epochs)}
    merge_shards(chosen, merged_log_path(run, name), shards_folder(run, name), most=most)
    return [Path(log) for log in list_logs(log_folder(run))]


def merged_samples(log: Path) -> EvalLog:
    """The log as Inspect reads it, every unit once."""
    found = read_eval_log(str(log))
    keys = [(str(one.id), one.epoch) for one in found.samples or []]
    assert sorted(keys) == sorted(unit_keys(map(str, range(TASKS)), EPOCHS))
    return found


def test_a_merged_log_has_the_metrics_that_inspect_computes_from_all_samples(
    tmp_path: Path,
) -> None:
    """Ours come from one score a task, so that not every sample's score is in memory."""
    found = merged_samples(merge(write_sharded_run(tmp_path, tasks=TASKS, epochs=EPOCHS)))
    ours = found.results, found.reductions
    for sample in found.samples or []:
        for score in (sample.scores or {}).values():
            score.explanation = None  # is long, and not kept in reduced scores
    recompute_metrics(found)
    assert ours[0] is not None and found.results is not None
    assert ours[0].total_samples == ours[0].completed_samples == TASKS * EPOCHS
    assert ours[0].scores == found.results.scores
    assert ours[0].total_samples == found.results.total_samples
    assert reduced(ours[1]) == reduced(found.reductions)


def reduced(reductions: list[EvalSampleReductions] | None) -> list[list[EvalSampleScore]]:
    """The reduced scores in the order of tasks; Inspect reads samples in another than we write."""
    return [sorted(one.samples, key=lambda score: str(score.sample_id)) for one in reductions or []]


def test_a_kill_between_the_merged_log_and_the_removal_of_shards_loses_nothing(
    tmp_path: Path,
) -> None:
    run = write_sharded_run(tmp_path, tasks=TASKS, epochs=EPOCHS)
    logs = log_folder(run)
    before = read_units(logs, read_manifest(run).spec.tasks, EPOCHS, AtomicUnit)
    shutil.copytree(logs, tmp_path / "shards")
    written = merge(run).read_bytes()
    # As the kill leaves it: the merged log is there, and so are all shards, or some of them.
    shutil.copytree(tmp_path / "shards", logs, dirs_exist_ok=True)
    shutil.rmtree(next(logs.glob("*.shards/0*")))
    assert read_units(logs, read_manifest(run).spec.tasks, EPOCHS, AtomicUnit) == before
    log = merge(run)
    merged_samples(log)
    assert log.read_bytes() == written  # it was complete, so it is not written again
    assert not [*logs.glob("*.shards")]


def test_a_kill_while_the_merged_log_is_written_leaves_the_shards_and_no_remains(
    tmp_path: Path,
) -> None:
    run = write_sharded_run(tmp_path, tasks=TASKS, epochs=EPOCHS)
    logs = log_folder(run)
    (logs / ".part-0123").write_bytes(b"half a log")
    spec = read_manifest(run).spec
    assert not read_units(logs, spec.tasks, spec.epochs, AtomicUnit).not_run
    merged_samples(merge(run))
    assert not [*logs.glob(".part-*")]


@pytest.mark.slow
def test_a_merge_that_is_killed_at_any_point_loses_no_unit_and_is_continued(
    tmp_path: Path,
) -> None:
    run = write_sharded_run(tmp_path, tasks=4, epochs=1)
    tasks = read_manifest(run).spec.tasks
    before = read_units(log_folder(run), tasks, 1, AtomicUnit)
    assert len(before.units) == 4
    program = [sys.executable, "-m", "tests.runs.killed_merge", str(run), str(tmp_path / "copies")]
    path = f"{REPOSITORY / 'src'}:{REPOSITORY}"
    subprocess.run(program, env={**os.environ, "PYTHONPATH": path}, check=True, timeout=300)
    copies = [*(tmp_path / "copies").iterdir()]
    merged = [copy for copy in copies if [*log_folder(copy).glob("*_x.eval")]]
    assert 5 < len(merged) < len(copies) - 5  # it was killed before and after the log was there
    for copy in copies:
        assert read_units(log_folder(copy), tasks, 1, AtomicUnit) == before, copy.name
        if find_shards(copy) is not None:
            merge(copy)
        (log,) = list_logs(log_folder(copy))
        assert read_units(log_folder(copy), tasks, 1, AtomicUnit) == before, copy.name
        assert sum(one.finished for one in find_kept_units(log_folder(copy)).values()) == 4
        assert len([*read_stored_summaries(log)]) == 4
        assert not [*log_folder(copy).glob(".part-*"), *log_folder(copy).glob("*.shards")]


def test_a_long_run_becomes_several_logs_with_the_same_units(tmp_path: Path) -> None:
    """All epochs of a task stay in one log if they fit, and each log is one that Inspect reads."""
    run = write_sharded_run(tmp_path, tasks=TASKS, epochs=EPOCHS)
    spec = read_manifest(run).spec
    before = read_units(log_folder(run), spec.tasks, spec.epochs, AtomicUnit)
    logs = merge_in_parts(run, most=25)
    assert [len(read_eval_log(str(log)).samples or []) for log in logs] == [24, 24, 12]
    assert all(is_part(str(log)) for log in logs) and not [*log_folder(run).glob("*.shards")]
    assert read_units(log_folder(run), spec.tasks, spec.epochs, AtomicUnit) == before


def test_a_task_with_more_epochs_than_a_log_takes_is_split(tmp_path: Path) -> None:
    run = write_sharded_run(tmp_path, tasks=2, epochs=EPOCHS)
    logs = merge_in_parts(run, most=2)
    assert [len(read_eval_log(str(log)).samples or []) for log in logs] == [2, 1, 2, 1]


def test_a_kill_between_two_of_several_logs_loses_nothing(tmp_path: Path) -> None:
    run = write_sharded_run(tmp_path, tasks=TASKS, epochs=EPOCHS)
    logs = log_folder(run)
    before = read_units(logs, read_manifest(run).spec.tasks, EPOCHS, AtomicUnit)
    shutil.copytree(logs, tmp_path / "shards")
    first, *others = merge_in_parts(run, most=25)
    written = first.read_bytes()
    # As the kill leaves it: the first log is there, and so are all shards.
    for log in others:
        log.unlink()
    shutil.copytree(tmp_path / "shards", logs, dirs_exist_ok=True)
    assert read_units(logs, read_manifest(run).spec.tasks, EPOCHS, AtomicUnit) == before
    assert merge_in_parts(run, most=25) == [first, *others]
    assert first.read_bytes() == written
    assert read_units(logs, read_manifest(run).spec.tasks, EPOCHS, AtomicUnit) == before
