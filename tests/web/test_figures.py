"""Figures for papers: the numbers beside them are those of the runs, and bytes repeat."""

import csv
from collections.abc import Mapping
from pathlib import Path

import pytest

from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import System
from gta_bench.records.units import Usage
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.web.figures import CAUSE_COLORS, list_figures, write_figures
from gta_bench.web.first_screen import find_headlines
from gta_bench.web.material import AtomicRun, JudgedRun
from tests.builders import manifest
from tests.metrics.workflow_units import SEVEN, rows, unit
from tests.web.test_atomic_page import gold, material, silent


def read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def runs(atomic_tasks: Mapping[str, AtomicTask]) -> list[AtomicRun]:
    few = dict(list(atomic_tasks.items())[:12])
    paid = [
        one.model_copy(update={"usage": Usage(cost_usd=0.02)}) for one in gold(few, "end-to-end")
    ]
    return [material(paid, "end-to-end", "gold"), material(silent(few), "end-to-end", "$silent$")]


def test_every_figure_has_its_numbers_beside_it(runs: list[AtomicRun], tmp_path: Path) -> None:
    files = write_figures(runs, tmp_path / "figures")
    stems = ("intervals", "causes", "costs", "differences")
    assert [file.name for file in files] == [
        f"{stem}-end-to-end.{suffix}" for stem in stems for suffix in ("csv", "svg", "pdf")
    ]
    found = {file.stem.partition("-")[0]: read(file) for file in files if file.suffix == ".csv"}
    own = find_headlines(runs[0])[0].primary
    assert own is not None
    assert float(found["intervals"][0]["AnsAcc"]) == pytest.approx(own.value)
    assert float(found["intervals"][0]["low"]) == pytest.approx(own.low)
    assert {row["outcome"] for row in found["causes"]} == {"passed", "format"}
    assert [row["US$ a task"] for row in found["costs"]] == ["0.02"]
    (gap,) = found["differences"]
    assert gap["difference"] == "gold - $silent$" and float(gap["low"]) > 0
    assert "$silent$" in (tmp_path / "figures" / "intervals-end-to-end.svg").read_text()


def test_a_row_counts_the_tasks_of_its_own_metric(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    """Rows of AnsAcc had the number of all units beside them; 57 tasks have no answer."""
    spent = {"usage": Usage(cost_usd=0.02)}
    paid = [one.model_copy(update=spent) for one in gold(atomic_tasks)]
    few = dict(list(atomic_tasks.items())[:100])
    answered = str(sum(task.answer is not None for task in few.values()))
    several = [material(paid, "end-to-end", "gold"), material(silent(few), "end-to-end", "few")]
    found = {
        one.name: [dict(zip(one.heading, map(str, row), strict=True)) for row in one.rows]
        for one in list_figures(several)
    }
    one, two = found["intervals-end-to-end"]
    assert (one["tasks"], one["of tasks"]) == ("172", "229")
    assert (two["tasks"], two["of tasks"]) == (answered, "100")
    assert [row["tasks"] for row in found["costs-end-to-end"]] == ["172"]
    assert [row["tasks"] for row in found["differences-end-to-end"]] == [answered]


def test_the_same_runs_give_the_same_bytes(runs: list[AtomicRun], tmp_path: Path) -> None:
    one, two = (write_figures(runs[:1], tmp_path / name) for name in ("one", "two"))
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


def test_a_workflow_run_has_its_success_rates_by_threshold(tmp_path: Path) -> None:
    one, said = unit(), list(rows({"a1": 10, "a2": 2, "b": 5}))
    about = manifest(
        dataset="workflow",
        dataset_digest="0",
        mode="workflow",
        system=System(model="m", agent="toolcalling"),
        tasks=("1",),
    )
    scores = score_workflow([one], said, thresholds=SEVEN)
    run = JudgedRun(WorkflowSummary("a", about, scores), [one], {}, {}, lambda digest: b"")
    files = write_figures([run], tmp_path)
    curve = read(tmp_path / "thresholds-workflow.csv")
    assert [float(row["Leaf SR"]) for row in curve[::5]] == pytest.approx([100, 200 / 3, 100 / 3])
    assert {file.stem for file in files} == {
        "intervals-workflow",
        "causes-workflow",
        "thresholds-workflow",
    }


def test_no_two_outcomes_share_a_color() -> None:
    assert len(set(CAUSE_COLORS.values())) == len(CAUSE_COLORS)
