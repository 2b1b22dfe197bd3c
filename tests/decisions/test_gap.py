"""The gap of a system between two sets of tasks, with and without a control."""

import json
import shutil
from pathlib import Path

import pytest

from gta_bench.decisions.gap import state_gap
from gta_bench.records.comparison import Gap, GapMetric
from gta_bench.records.statistics import Interval
from gta_bench.statistics.proportions import newcombe, subtract, wilson
from tests.cli.test_run import gta


@pytest.fixture(scope="module")
def runs(atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference and silence on two sets of tasks."""
    folder = tmp_path_factory.mktemp("gap")
    for agent in ("gold", "silent"):
        for name, tasks in (("old", "0:12"), ("new", "12:24")):
            options = ("--mode", "step", "--agent", agent, "--tasks", tasks, "--data", atomic_dir)
            assert gta("run", "atomic", *options, "--out", folder / agent / name).exit_code == 0
    return folder


def test_a_system_that_knows_only_the_old_tasks_has_a_gap(runs: Path) -> None:
    knows = runs / "gold" / "old", runs / "silent" / "new"
    found = gta("compare", "--gap", *knows)
    assert found.exit_code == 0, found.output
    assert "ArgAcc is 100.0 on 12 tasks" in found.stdout
    assert "a gap of +100.0 points (95 %: +" in found.stdout
    assert "is not proof that the system knows" in found.stdout and "control" in found.stdout
    assert "about one system, and these are two: " in found.stderr
    control = runs / "silent" / "old", runs / "silent" / "new"
    found = gta("compare", "--gap", *knows, *control, "--json")
    assert found.exit_code == 0, found.output
    gap = json.loads(found.stdout)
    assert gap["beyond"]["estimate"] == 100 and gap["beyond"]["low"] > 0
    assert "gains more from the first tasks than the control" in gap["conclusion"]
    paper = gta("compare", "--gap", *knows, "--markdown").stdout
    assert paper.startswith("# Gap\n") and "| ArgAcc | 100.00 |" in paper


def test_a_control_with_the_same_gap_explains_it(runs: Path) -> None:
    same = runs / "gold" / "old", runs / "gold" / "new"
    found = gta("compare", "--gap", *same, runs / "silent" / "old", runs / "silent" / "new")
    assert "a gap of +0.0 points" in found.stdout
    assert "The control explains the gap" in found.stdout


def test_what_is_no_gap_is_refused_in_a_line(runs: Path, tmp_path: Path) -> None:
    old, new = runs / "gold" / "old", runs / "gold" / "new"
    assert "A gap needs two runs" in str(gta("compare", "--gap", old, new, old).exception)
    assert "--self-test" in str(gta("compare", "--gap", "--self-test", old, new).exception)
    silent = runs / "silent"
    swapped = gta("compare", "--gap", old, new, silent / "new", silent / "old")
    assert "must have the same tasks" in str(swapped.exception)
    paired = gta("compare", "--gap", old, silent / "old")
    assert "have 12 tasks in common, so their scores are paired" in str(paired.exception)
    shutil.copytree(old, tmp_path / "copy")
    assert "same run" in str(gta("compare", "--gap", old, tmp_path / "copy").exception)


def test_a_system_that_gains_less_than_the_control_is_said() -> None:
    def make(low: float, high: float) -> Interval:
        middle = (low + high) / 2
        return Interval(estimate=middle, low=low, high=high, level=0.95, n=9, method="wilson")

    first, second = make(40, 60), make(40, 60)
    metric = GapMetric(
        metric="AnsAcc", role="primary", first=first, second=second, gap=subtract(first, second)
    )
    control = Gap(first="c", second="d", metrics=(metric,))
    found = Gap(first="a", second="b", metrics=(metric,), control=control, beyond=make(-30, -10))
    assert "gains less from the first tasks than the control" in state_gap(found)


def test_the_difference_of_two_wilson_intervals_is_newcombes() -> None:
    found = subtract(wilson(5, 20), wilson(9, 30))
    wanted = newcombe(5, 20, 9, 30)
    assert (found.low, found.high) == (wanted.low, wanted.high) and found.method == "mover"
