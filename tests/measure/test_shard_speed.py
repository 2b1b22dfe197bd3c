"""What shards gain on two cores with warm workers, and what our layer costs over bare shards."""

import os
import time
from pathlib import Path
from secrets import token_hex

import pytest

from gta_bench.records.units import AtomicUnit
from gta_bench.running.backends.backend import INLINE, Backend, Processes, RayTasks
from gta_bench.running.system_run import execute
from gta_bench.runs.directory import log_folder
from gta_bench.runs.logs import read_units
from gta_bench.runs.merge import read_plan
from gta_bench.settings import BudgetSettings, Settings
from tests.builders import atomic_task, write_atomic
from tests.measure.shard_work import AGENT, bare_shard
from tests.planning import Planned, planned

pytestmark = pytest.mark.measure
UNITS = int(os.environ.get("GTA_UNITS", "560"))
AT_ONCE = 10


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


def bare_seconds(data: Path, out: Path, backend: Backend, like: Path) -> float:
    shards = read_plan(like)
    assert shards is not None
    items = [
        (str(data), str(out / shard.name), shard.tasks, AT_ONCE // 2) for shard in shards.shards
    ]
    start = time.perf_counter()
    backend.run(bare_shard, items, at_once=2, tick=int)
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
        # In turn, and the better of two each, so that one disturbance spoils no ratio.
        ours, bare = [], []
        for turn in ("first", "second"):
            out = tmp_path / turn
            ours.append(seconds(data, out, backend))
            bare.append(bare_seconds(data, tmp_path / f"{turn}-bare", backend, out))
        inline = seconds(data, tmp_path / "inline", INLINE)
    finally:
        backend.close()
    best, bare_best = min(ours), min(bare)
    print(
        f"{name}: {UNITS} units, inline {inline:.1f} s, two workers {best:.1f} s "
        f"(gain {inline / best:.2f}), bare shards {bare_best:.1f} s "
        f"(ours {best / bare_best:.3f} of it), load {before:.1f}; all {ours}, {bare}"
    )
    assert inline / best > 1
