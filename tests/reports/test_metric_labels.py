"""Every view takes its metrics from the table: other labels there are other labels here."""

from collections.abc import Sequence

import pytest

from gta_bench.cli.judge_attack import FLOOR_HEADING
from gta_bench.judge_quality.cascade import cascade_table
from gta_bench.judge_quality.paired_judges import drift_table
from gta_bench.leaderboard.tables import BOARD_METRICS, BOARDS, NESTED
from gta_bench.metrics.table import METRICS, metric, primary, score_metrics
from gta_bench.records.judges import CascadeReport, Drift
from gta_bench.records.run import Mode, RunMode
from gta_bench.records.statistics import Interval
from gta_bench.reports.gains import GAINED, gain_text
from gta_bench.reports.summary import score_table
from gta_bench.reports.workflow_summary import HEADING
from gta_bench.tasks.scorers import pooled_answers, pooled_steps
from gta_bench.web.boards import COLUMNS

LABELS = {row.label for row in METRICS} | {row.heading for row in METRICS}
NOT_METRICS = {
    *("run", "judge", "system", "scoring", "n/N", "leaves", "cost", "note"),
    *("band", "calls saved %", "95 %", "other outcome %", "outside the band %", "unscored %"),
    "leaf score",
}
ZERO = Interval(estimate=0, low=0, high=0, n=1, method="wilson", level=0.95)
DRIFT = Drift(
    old="a",
    new="b",
    leaves=1,
    tasks=1,
    left_out=0,
    leaf_score=ZERO,
    leaf_sr=ZERO,
    root_score=ZERO,
    kappa=None,
    ac1=None,
    flips=ZERO,
    same_prompts=True,
    margin=1,
    sharing="yes",
)
CASCADE = CascadeReport(
    leaves=1, tasks=1, repeats=1, left_out=0, limit=5, rows=(), chosen=None, folds=()
)


@pytest.mark.parametrize(
    "heading",
    [
        score_table([], "step").heading,
        score_table([], "end-to-end").heading,
        HEADING,
        FLOOR_HEADING,
        cascade_table(CASCADE).heading,
        [row[0] for row in drift_table(DRIFT).rows],
    ],
)
def test_a_table_has_labels_of_the_table_of_metrics(heading: Sequence[str]) -> None:
    found = set(heading) - NOT_METRICS
    assert found
    assert found <= LABELS


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("step", "InstAcc ToolAcc ArgAcc SummAcc typed calls errors malformed"),
        ("end-to-end", "AnsAcc AnsAcc+I P-F1 O-F1 L-F1 C-F1 calls errors malformed"),
    ],
)
def test_the_terminal_report_shows_every_metric_of_the_mode(mode: Mode, expected: str) -> None:
    heading = score_table([], mode).heading
    assert " ".join(heading[3:-1]) == expected
    assert heading[-1] == "note"
    assert heading[3:-1] == tuple(row.heading for row in score_metrics(mode))


def test_views_choose_metrics_of_their_mode_the_primary_one_first_on_the_page() -> None:
    modes: tuple[RunMode, ...] = ("step", "end-to-end", "workflow")
    for mode in modes:
        names = {row.name for row in score_metrics(mode)}
        assert COLUMNS[mode][0] == primary(mode).name
        assert {*COLUMNS[mode], *GAINED.get(mode, ())} <= names


def test_boards_are_ordered_by_a_primary_metric_and_name_it() -> None:
    assert {text.headline for text in BOARDS.values()} == {"ans_acc", "root_sr"}
    for text in BOARDS.values():
        assert f"Sorted by {metric(text.headline).label}" in text.about
    assert {"leaf_sr", "inst_acc", "tool_acc", "arg_acc"} == NESTED
    assert set(BOARD_METRICS) > NESTED


def test_gains_are_named_by_their_metrics() -> None:
    assert gain_text("step") == "the mean of InstAcc, ToolAcc, ArgAcc and SummAcc"
    assert gain_text("end-to-end") == "AnsAcc+I"
    assert gain_text("workflow") == "Root score"


def test_the_scorers_give_every_share_of_the_table() -> None:
    step, end = pooled_steps()([]), pooled_answers()([])
    assert isinstance(step, dict) and isinstance(end, dict)
    for found, mode in ((step, "step"), (end, "end-to-end")):
        shares = [row for row in score_metrics(mode) if row.scale == "percent"]  # type: ignore[arg-type]
        assert list(found) == [
            *(f"strict_{row.name}" for row in shares),
            *(f"compat_{row.name}" for row in shares if row.compat),
        ]
