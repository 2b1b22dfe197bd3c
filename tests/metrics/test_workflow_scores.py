import pytest

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.metrics.run_scores import NOT_RUN
from gta_bench.metrics.workflow_scores import NO_FILE, NOT_JUDGED, score_workflow
from gta_bench.records.calls import CallRecord, CallStatus
from gta_bench.records.files import Deliverable
from gta_bench.records.verdicts import VerdictRow
from gta_bench.records.workflow_scores import GroupScores, JudgeScores
from tests.metrics.workflow_units import SEVEN, rows, unit

GOOD = {"a1": 10.0, "a2": 8.0, "b": 7.0}
POOR = {"a1": 10.0, "a2": 2.0, "b": 5.0}


def file(name: str) -> Deliverable:
    return Deliverable(path=f"outputs/{name}", digest="0" * 64, size=1)


def called(tool: str, status: CallStatus = "done") -> CallRecord:
    return CallRecord(tool=tool, status=status, seconds=1)


def only(scores: tuple[JudgeScores, ...]) -> JudgeScores:
    assert len(scores) == 1
    return scores[0]


def group(groups: tuple[GroupScores, ...], name: str) -> GroupScores:
    return next(one for one in groups if one.name == name)


def test_roots_weigh_alike_and_leaves_are_pooled() -> None:
    scores = score_workflow(
        [unit("1"), unit("2")], [*rows(GOOD, "1"), *rows(POOR, "2")], thresholds=SEVEN
    )
    table = only(scores.judges)
    roots = [(2 * (10 + 24) / 4 + 7) / 3, (2 * (10 + 6) / 4 + 5) / 3]
    assert [task.root for task in table.tasks] == pytest.approx(roots)
    assert table.strict.root_score == pytest.approx(sum(roots) / 2)
    assert table.strict.root_sr == 50
    assert table.strict.leaf_sr == pytest.approx(400 / 6)
    assert table.compat.root_score == pytest.approx(sum(roots) / 2)
    assert scores.complete


def test_a_leaf_without_a_score_is_neither_zero_nor_dropped_in_silence() -> None:
    broken: dict[str, float | str] = {**POOR, "b": "reply_not_json"}
    scores = score_workflow(
        [unit("1"), unit("2")], [*rows(GOOD, "1"), *rows(broken, "2")], thresholds=SEVEN
    )
    strict = only(scores.judges).strict
    assert (strict.n, strict.n_units, strict.leaves, strict.n_leaves) == (1, 2, 5, 6)
    assert strict.root_score == only(scores.judges).tasks[0].root
    assert only(scores.judges).tasks[1].leaves[2].causes == ("reply_not_json",)
    assert not scores.complete


def test_a_unit_that_failed_or_was_not_run_has_no_score_and_is_counted() -> None:
    scores = score_workflow(
        [unit("1"), unit("2", failure="HTTP 500")],
        rows(GOOD, "1"),
        thresholds=SEVEN,
        not_run=[("3", 1)],
    )
    strict = only(scores.judges).strict
    assert (strict.n, strict.n_units) == (1, 3)
    assert (scores.n, scores.n_units) == (1, 3)
    assert [one.cause for one in scores.unscored] == ["HTTP 500", NOT_RUN]
    assert only(scores.judges).tasks[1].compat is None


def test_a_system_that_delivered_nothing_is_scored_by_what_the_judge_said() -> None:
    zero = dict.fromkeys(GOOD, 0.0)
    scores = score_workflow([unit("1")], rows(zero), thresholds=SEVEN)
    assert only(scores.judges).strict.root_score == 0
    assert scores.complete


def test_a_run_that_delivered_nothing_at_all_fails_by_the_judge_that_had_nothing_to_see() -> None:
    """It had no table, so a system that gives up everywhere was not counted."""
    units = [unit("1", delivered=False), unit("2", delivered=False)]
    scores = score_workflow(units, (), thresholds=SEVEN, asked=["j"])
    table = only(scores.judges)
    assert (table.strict.root_score, table.strict.n, table.compat.n) == (0, 2, 0)
    assert scores.complete


def test_repeats_of_a_judge_are_averaged_and_each_judge_has_its_table() -> None:
    twice = [*rows(GOOD), *rows(POOR, repeat=2), *rows(GOOD, judge="k")]
    scores = score_workflow([unit("1")], twice, thresholds=SEVEN)
    assert [(one.judge, one.repeats) for one in scores.judges] == [("j", 2), ("k", 1)]
    assert [leaf.value for leaf in scores.judges[0].tasks[0].leaves] == [10, 5, 6]


def test_a_repeat_that_is_missing_leaves_the_leaf_without_a_score() -> None:
    scores = score_workflow(
        [unit("1")], [*rows(GOOD), *rows({"a1": 3}, repeat=2)], thresholds=SEVEN
    )
    leaves = only(scores.judges).tasks[0].leaves
    assert [leaf.value for leaf in leaves] == [6.5, None, None]
    assert leaves[1].causes == (NOT_JUDGED,)
    assert only(scores.judges).compat.n == 0


def test_upstreams_guess_counts_in_compat_alone() -> None:
    guessed = [*rows({"a1": "reply_not_kept"}, compat=4.0), *rows({"a2": 8, "b": 7})]
    table = only(score_workflow([unit("1")], guessed, thresholds=SEVEN).judges)
    assert table.strict.root_score is None
    assert table.compat.root_score == pytest.approx((2 * (4 + 24) / 4 + 7) / 3)


def test_a_score_that_nobody_guessed_is_missing_in_compat_too() -> None:
    table = only(
        score_workflow([unit("1")], rows({**GOOD, "b": "timeout"}), thresholds=SEVEN).judges
    )
    assert (table.compat.n, table.compat.root_score) == (0, None)


def test_tool_sr_is_the_share_of_calls_that_the_executor_finished() -> None:
    calls = (called("OCR"), called("OCR", "error"), called("Plot", "unavailable"), called("Plot"))
    scores = score_workflow([unit("1", calls=calls)], [], thresholds=SEVEN)
    assert scores.tool_sr == 50
    assert scores.judges == ()
    assert score_workflow([unit("1")], [], thresholds=SEVEN).tool_sr is None


def test_groups_are_by_category_by_what_was_delivered_and_by_the_tools_called() -> None:
    units = [
        unit("1", deliverables=(file("a.PDF"), file("b.docx")), calls=(called("OCR", "error"),)),
        unit("2", deliverables=(file("notes"), file(".hidden")), calls=(called("Own"),)),
        unit("3"),
    ]
    table = only(
        score_workflow(
            units,
            [*rows(GOOD, "1"), *rows(POOR, "2"), *rows(POOR, "3")],
            thresholds=SEVEN,
        ).judges
    )
    assert [one.name for one in table.kinds] == ["docx", "no ending", NO_FILE, "pdf"]
    assert group(table.kinds, "pdf").root_sr == 100
    assert group(table.tool_categories, "perception").n == 1
    assert group(table.tool_categories, "logic").root_sr is None
    assert group(table.categories, "Plans").n_units == 3


def test_a_tool_of_your_own_counts_in_the_category_that_it_names() -> None:
    """Tasks that only called tools of another package were in no group."""
    calls = [
        called("RollDice").model_copy(update={"category": "logic"}),
        called("Route").model_copy(update={"category": "geography"}),
        called("OCR"),
    ]
    units = [unit("1", calls=tuple(calls[:2])), unit("2", calls=tuple(calls[2:]))]
    verdicts = [*rows(GOOD, "1"), *rows(POOR, "2")]
    table = only(score_workflow(units, verdicts, thresholds=SEVEN).judges)
    assert [one.name for one in table.tool_categories] == [*CATEGORIES, "geography"]
    assert [one.n for one in table.tool_categories] == [1, 0, 1, 0, 1]


def test_a_task_without_category_has_a_group_of_its_own() -> None:
    task = unit("1").task.model_copy(update={"category": None})
    table = only(score_workflow([unit("1", task=task)], rows(GOOD), thresholds=SEVEN).judges)
    assert [one.name for one in table.categories] == ["none"]


def test_the_curve_has_both_rates_at_every_threshold_and_never_rises() -> None:
    curve = only(score_workflow([unit("1")], rows(POOR), thresholds=SEVEN).judges).curve
    assert [point.threshold for point in curve] == list(range(11))
    assert [point.leaf_sr for point in curve][2:6] == pytest.approx(
        [100, 200 / 3, 200 / 3, 200 / 3]
    )
    assert curve[10].leaf_sr == pytest.approx(100 / 3)
    assert [point.root_sr for point in curve] == sorted(
        (point.root_sr or 0 for point in curve), reverse=True
    )


def test_what_a_judge_took_is_added_up() -> None:
    taken = rows(GOOD, input_tokens=10, output_tokens=2, cost_usd=0.5)
    usage = only(score_workflow([unit("1")], taken, thresholds=SEVEN).judges).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (30, 6, 1.5)


def test_a_verdict_without_a_price_makes_the_cost_of_its_judge_unknown() -> None:
    priced = [*rows({"a1": 8}, input_tokens=10, cost_usd=0.5)]
    failed = [*rows({"b": "timeout"})]
    unpriced = [*rows({"a2": 8}, input_tokens=10)]

    def cost(given: list[VerdictRow]) -> float | None:
        return only(score_workflow([unit("1")], given, thresholds=SEVEN).judges).usage.cost_usd

    assert cost([*priced, *failed]) == 0.5
    assert cost([*priced, *unpriced]) is None
