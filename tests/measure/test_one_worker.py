"""Faults of one worker among several: its disk is full, its clock is wrong and it dies."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.datasets.atomic import load_atomic
from gta_bench.runs.directory import progress_folder, read_progress
from tests.chat_server import chat_server
from tests.conftest import REPOSITORY
from tests.needs import needs
from tests.scripted import reference_reply
from tests.slow.test_shards import Bench, environment, finished, uuids, wait_until

pytestmark = pytest.mark.measure

UNITS = 24
SOME = ("run", "--tasks", f"0:{UNITS}", "--max-connections", "4", "--no-preflight")


@pytest.fixture
def bench(atomic_dir: Path, tmp_path: Path, loopback: None) -> Iterator[Bench]:
    with chat_server(reference_reply(load_atomic(atomic_dir).tasks)) as server:
        yield Bench(tmp_path, atomic_dir, server)


def faulty(bench: Bench, **fault: str) -> dict[str, str]:
    """The environment of a command whose first worker has the fault."""
    own = environment(bench.root)
    folder = REPOSITORY / "tests" / "measure" / "one_worker"
    return (
        own
        | fault
        | {
            "PYTHONPATH": f"{folder}:{own['PYTHONPATH']}",
            "GTA_TEST_TAKEN": str(bench.root / "taken"),
        }
    )


def check_complete(bench: Bench, kept: dict[tuple[str, int], set[str | None]]) -> None:
    """Every unit is finished once; those that were kept are still the same."""
    after = uuids(bench.root / "run")
    assert len(after) == UNITS
    assert all(len(samples) == 1 for samples in after.values())
    assert {key: after[key] for key in kept} == kept
    progress = read_progress(progress_folder(bench.root / "run"))
    assert progress is not None
    assert (progress.done, progress.failed, progress.running) == (UNITS, 0, 0)


def test_a_worker_whose_clock_is_hours_ahead_stops_nothing_and_its_units_are_kept(
    bench: Bench,
) -> None:
    """It refused to start units, as its clock was after the end of the command's time."""
    bench.server.delay = 0.1
    driver = subprocess.Popen(
        bench.command(*SOME, "--workers", "2", "--max-hours", "1"),
        cwd=bench.root,
        env=faulty(bench, GTA_TEST_CLOCK="10800"),
        stderr=subprocess.PIPE,
        text=True,
    )
    run = bench.root / "run"
    wait_until(lambda: finished(run) >= UNITS // 2, driver)
    kept = uuids(run)
    os.kill(int((bench.root / "taken" / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
    bench.server.delay = 0.0
    _, said = driver.communicate(timeout=300)
    assert driver.returncode == 0, said
    check_complete(bench, kept)
    progress = read_progress(progress_folder(run))
    assert progress is not None and progress.rate is not None
    assert progress.rate > 1  # with the hours between the clocks it would be a quarter


FULL = """
head -c {filled} /dev/zero > {small}/filler
{command}; echo code=$?
"""


@needs("bwrap")
def test_a_full_disk_of_one_worker_stops_the_run_and_nothing_is_lost(bench: Bench) -> None:
    small = bench.root / "small"
    small.mkdir()
    command = " ".join(bench.command(*SOME, "--workers", "2"))
    mount = ("--dev-bind", "/", "/", "--size", "1000000", "--tmpfs", str(small))
    done = subprocess.run(
        ["bwrap", *mount, "bash", "-c", FULL.format(command=command, small=small, filled=970_000)],
        cwd=bench.root,
        env=faulty(bench, GTA_TEST_TEMP=str(small)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "code=3" in done.stdout, (done.stdout, done.stderr)
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("gta: ")]
    assert f" The disk with {small} on " in line
    assert " is full: free some space." in line
    assert f" of {UNITS} units are finished and safe in run; run the same command again" in line
    assert "Traceback" not in done.stderr
    kept = uuids(bench.root / "run")
    assert 1 <= len(kept) < UNITS
    bench.run(*SOME)
    check_complete(bench, kept)
