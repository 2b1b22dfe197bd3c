"""What shards gain on two cores with warm workers, and what our layer costs over bare shards."""

import os
import time
from pathlib import Path
from secrets import token_hex
from statistics import median

import pytest

from gta_bench.records.units import AtomicUnit
from gta_bench.running.backends.backend import INLINE, Backend, Processes, RayTasks
from gta_bench.running.leases import Items
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import read_units
from gta_bench.settings import BudgetSettings, Settings
from tests.builders import atomic_task, write_atomic
from tests.measure.shard_work import AGENT, bare_shard
from tests.planning import Planned, planned

pytestmark = pytest.mark.measure
UNITS = int(os.environ.get("GTA_UNITS", "560"))
AT_ONCE = 10
ROUNDS = int(os.environ.get("GTA_ROUNDS", "3"))


def wanted(data: Path, tasks: str | None = None) -> Planned:
    settings = Settings(budget=BudgetSettings(max_connections=AT_ONCE))
    return planned(data, "step", agent=AGENT, tasks=tasks, settings=settings)


def seconds(data: Path, out: Path, backend: Backend, tasks: str | None = None) -> float:
    """Evaluation, merge and reading back."""
    run = wanted(data, tasks)
    start = time.perf_counter()
    execute(*run, out, lambda _: None, backend=backend)
    read_units(log_folder(out), run.manifest.spec.tasks, 1, AtomicUnit)
    return time.perf_counter() - start


def bare_seconds(data: Path, out: Path, backend: Backend) -> float:
    """Four shards that are dealt in turn."""
    names = [str(number) for number in range(UNITS)]
    shards = [(str(data), str(out / str(k)), tuple(names[k::4]), AT_ONCE // 2) for k in range(4)]
    start = time.perf_counter()
    backend.run(bare_shard, Items(shards), at_once=2, tick=int)
    return time.perf_counter() - start


def opened(name: str) -> Backend:
    return Processes(2) if name == "processes" else RayTasks("auto", 2)


@pytest.mark.parametrize("name", ["processes", "ray"])
def test_two_workers_are_nearly_twice_as_fast_and_our_layer_costs_little(
    name: str, tmp_path: Path, loopback: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", f"/tmp/gta-ray-{os.getpid()}")
    (tmp_path / "token").write_text(token_hex(32), encoding="utf-8")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    data = write_atomic(tmp_path / "data", {str(n): atomic_task() for n in range(UNITS)})
    backend = opened(name)
    try:
        seconds(data, tmp_path / "warm", backend, "0:8")
        seconds(data, tmp_path / "warm-inline", INLINE, "0:2")
        before = os.getloadavg()[0]
        # The three of a round meet the same machine, so a disturbance spoils one round at most.
        rounds = []
        for turn in range(ROUNDS):
            out = tmp_path / str(turn)
            ours = seconds(data, out, backend)
            bare = bare_seconds(data, tmp_path / f"{turn}-bare", backend)
            rounds.append((ours, bare, seconds(data, tmp_path / f"{turn}-inline", INLINE)))
    finally:
        backend.close()
    gain = median(inline / ours for ours, _, inline in rounds)
    layer = median(ours / bare for ours, bare, _ in rounds)
    print(
        f"{name}: {UNITS} units, median of {ROUNDS} rounds: gain of two workers {gain:.2f}, ours "
        f"{layer:.3f} of bare shards, load {before:.1f}; ours, bare, inline: {rounds}"
    )
    assert gain > 1
