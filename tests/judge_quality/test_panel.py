"""Several judges and repeats of the same leaves: agreement, panel scores, unstable leaves."""

import pytest

from gta_bench.judge_quality.panel import (
    UNSTABLE_SHOWN,
    has_repeated_scores,
    panel_report,
    panel_table,
    unstable_table,
    unstable_title,
)
from gta_bench.metrics.panel import LeafTable, combine_judges, pack_leaves
from gta_bench.metrics.workflow_scores import place_rows, score_workflow
from gta_bench.records.verdicts import Scored, VerdictRow
from tests.metrics.workflow_units import SEVEN, rows, unit

FIRST = [
    *rows({"a1": 8, "a2": 6, "b": 2}, judge="x", cost_usd=0.25),
    *rows({"a1": 8, "a2": 8, "b": 2}, judge="x", repeat=2, cost_usd=0.25),
]
SECOND = [
    *rows({"a1": 9, "a2": 4, "b": 3}, judge="y"),
    *rows({"a1": 9, "a2": 4, "b": "refused"}, judge="y", repeat=2),
]


def packed(*given: VerdictRow) -> LeafTable:
    return pack_leaves(place_rows(given).values(), ())


def test_repeats_pairs_and_cost_are_in_one_table() -> None:
    table = panel_table(panel_report(packed(*FIRST, *SECOND), threshold=7))
    first, second, both = table.rows
    assert first[:5] == ("x", "6", "3", "0.82", "33.33 (0.00 to 100.00)")
    assert first[-1] == "$1.5000"
    assert second[:5] == ("y", "6", "2", "0.00", "0.00 (0.00 to 100.00)")
    assert second[-1] == "-"
    assert both[:5] == ("x and y", "-", "3", "1.35", "33.33 (0.00 to 100.00)")
    # All leaves are of one task, which says nothing of others.
    assert table.heading[5:10] == ("alpha", "alpha pass", "AC1 pass", "ICC", "kappa")
    assert all(cell.endswith("(-1.00 to 1.00)") and float(cell[:4]) < 1 for cell in both[5:10])


def test_three_judges_have_a_row_for_all() -> None:
    third = rows({"a1": 9, "a2": 9, "b": 9}, judge="z")
    names = [row.name for row in panel_report(packed(*FIRST, *SECOND, *third), threshold=7).rows]
    assert names == ["x", "y", "z", "x and y", "x and z", "y and z", "all 3 judges"]


def test_leaves_on_both_sides_of_the_threshold_are_listed_worst_first() -> None:
    panel = panel_report(
        packed(*FIRST, *SECOND, *rows({"a1": 0}, "2"), *rows({"a1": 10}, "2", repeat=2)),
        threshold=7,
    )
    assert unstable_table(panel).rows == (
        ("2", "a1", "7.07", "j: 0 10"),
        ("1", "a2", "1.91", "x: 6 8; y: 4 4"),
    )
    assert unstable_title(panel) == "2 of 4 leaves with scores on both sides of 7"


def test_only_the_worst_leaves_are_shown_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[VerdictRow] = []
    for number in range(UNSTABLE_SHOWN + 5):
        said += rows({"a1": 0}, task=str(number))
        said += rows({"a1": 10}, task=str(number), repeat=2)
    monkeypatch.setattr("gta_bench.judge_quality.panel.UNSTABLE_LISTED", UNSTABLE_SHOWN + 1)
    panel = panel_report(packed(*said), threshold=7)
    assert (len(panel.unstable), panel.unstable_leaves) == (UNSTABLE_SHOWN + 1, UNSTABLE_SHOWN + 5)
    assert len(unstable_table(panel).rows) == UNSTABLE_SHOWN
    assert unstable_title(panel).startswith("25 of 25 leaves")
    assert unstable_title(panel).endswith("the worst 20")


def test_one_verdict_a_leaf_says_nothing_of_agreement() -> None:
    assert not has_repeated_scores(panel_report(packed(*rows({"a1": 3})), threshold=7))
    assert has_repeated_scores(panel_report(packed(*FIRST), threshold=7))


@pytest.mark.parametrize(("pooling", "expected"), [("mean", 5.5), ("majority", 4.0)])
def test_a_panel_is_a_judge_of_its_own(pooling: str, expected: float) -> None:
    found = combine_judges([*FIRST, *SECOND], pooling)  # type: ignore[arg-type]
    scores = {row.key.leaf: row.verdict.value for row in found if isinstance(row.verdict, Scored)}
    assert set(scores) == {"a1", "a2"}, "b has no score of y in its second repeat"
    assert scores["a2"] == pytest.approx(expected)
    assert {row.key.judge for row in found} == {f"panel, {pooling} of x and y"}
    judged = score_workflow([unit()], [*FIRST, *SECOND, *found], thresholds=SEVEN)
    assert judged.judges[0].judge == f"panel, {pooling} of x and y"


def test_one_judge_is_no_panel() -> None:
    assert combine_judges(FIRST, "mean") == ()
