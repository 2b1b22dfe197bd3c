"""Judging 20 real tasks with 229 leaves: upstream's behavior replayed, and ours, in one run."""

import asyncio
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.running.judge_run import prepare_evidence
from gta_bench.settings import Settings
from gta_bench.tasks.judging import find_judgeable_units
from tests.judging.cost import our_cost, upstream_cost
from tests.judging.counting_server import counting_server

pytestmark = pytest.mark.measure
ALL = 100


def test_judging_costs_a_fraction_of_upstreams(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch, loopback: None
) -> None:
    """1 s a request; what rendering takes is added to each of ours, though it happens once.

    The first of ours pays for the start of the engine: half of a process's time on a busy machine.
    """
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    stored = data_dir / "predictions" / "workflow_gemini25pro_lagent_20"
    run = tmp_path / "run"
    command = ["import", "opencompass", str(stored), "--dataset", "workflow"]
    command += ["--data", str(data_dir / "gta_workflow"), "--out", str(run)]
    assert CliRunner().invoke(app, command).exit_code == 0
    units = find_judgeable_units(run)
    files = {name: sorted((stored / f"task{name}" / "attachments").glob("*")) for name in units}
    assert sum(len(list(unit.task.leaves())) for unit in units.values()) == 229
    start = time.monotonic()
    asyncio.run(prepare_evidence(run, units.values(), Settings()))
    rendering = time.monotonic() - start
    print(f"rendering: {rendering:.1f} s")
    with counting_server(1.0) as server:
        ours = [our_cost(run, server, leaves) for leaves in (ALL, 4, 1)]
        theirs = upstream_cost(units, files, server)
    for cost in (theirs, *ours):
        wall, sent = cost.seconds / theirs.seconds, cost.counts.bytes / theirs.counts.bytes
        print(f"{cost.line()}; of upstream: wall {wall:.3f}, bytes {sent:.3f}")
    _, four, one = ours
    assert all(cost.seconds + rendering <= theirs.seconds / 10 for cost in ours)
    assert one.counts.cached >= 0.7 * one.counts.tokens
    assert four.counts.bytes <= theirs.counts.bytes / 4
