from collections.abc import Mapping
from typing import get_args

import pytest

from gta_bench.leaderboard.entries import check_entry, find_count, find_denominator
from gta_bench.metrics.compat import end_to_end
from gta_bench.metrics.reference import reference_trace
from gta_bench.metrics.strict import steps as strict_steps
from gta_bench.metrics.table import ANS_ACC, ANS_ACC_I, F1S
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.leaderboard import Board, Entry, MetricName, Score
from gta_bench.records.steps import CallStep


def entry(board: str = "atomic", scoring: str = "compat", **scores: Score | float) -> Entry:
    return Entry.model_validate(
        {
            "id": "x",
            "board": board,
            "release": "2026-11",
            "system": "x",
            "scoring": scoring,
            "status": "self-reported",
            "source": "here",
            "scores": {
                name: score if isinstance(score, Score) else Score(value=score)
                for name, score in scores.items()
            },
        }
    )


def with_one(metric: str, value: float, *, board: str = "atomic", scoring: str = "compat") -> Entry:
    raw = entry(board, scoring).model_dump()
    return Entry.model_validate({**raw, "scores": {metric: Score(value=value)}})


def checks(one: Entry) -> list[tuple[str, str]]:
    return [(finding.check, finding.metric) for finding in check_entry(one)]


@pytest.mark.parametrize(
    ("board", "metric", "value", "found"),
    [
        ("atomic", "inst_acc", 85.19, []),
        ("atomic", "inst_acc", 23.23, [("no-count", "inst_acc")]),
        ("atomic", "tool_acc", 61.40, []),
        ("atomic", "tool_acc", 61.50, [("no-count", "tool_acc")]),
        ("atomic", "summ_acc", 61.5, []),
        ("workflow", "root_sr", 14.39, []),
        ("workflow", "root_sr", 14.40, [("no-count", "root_sr")]),
        ("workflow", "leaf_sr", 28.46, []),
        ("workflow", "p_sr", 13.16, []),
        ("workflow", "o_sr", 13.16, [("no-count", "o_sr")]),
        ("workflow-30", "leaf_sr", 73.55, []),
        ("workflow-30", "leaf_sr", 73.5, [("no-count", "leaf_sr")]),
    ],
)
def test_a_share_must_be_a_whole_count(
    board: Board, metric: str, value: float, found: list[tuple[str, str]]
) -> None:
    assert checks(with_one(metric, value, board=board)) == found


def test_how_exactly_a_value_is_printed_decides_what_it_can_be() -> None:
    assert find_count(Score(value=53.3, decimals=1), 30) == 16
    assert find_count(Score(value=53.3, decimals=2), 30) is None


def test_a_count_that_is_given_must_fit_the_value_and_the_metric() -> None:
    assert checks(entry(tool_acc=Score(value=61.4, k=342, n=557))) == []
    assert checks(entry(tool_acc=Score(value=61.4, k=343, n=557))) == [("other-count", "tool_acc")]
    assert checks(entry(tool_acc=Score(value=50, k=1, n=2))) == [("other-count", "tool_acc")]
    assert checks(entry(summ_acc=Score(value=50, k=86, n=172))) == []


def test_strict_scoring_counts_every_turn_of_the_reference() -> None:
    assert checks(entry(scoring="strict", inst_acc=round(100 * 501 / 770, 2))) == []
    assert checks(entry(scoring="strict", inst_acc=85.19)) == []
    assert checks(entry(scoring="strict", inst_acc=64.75)) == [("no-count", "inst_acc")]


@pytest.mark.parametrize(
    ("scoring", "metric", "value", "fits"),
    [
        ("compat", "inst_acc", 105.62, True),
        ("compat", "inst_acc", 105.76, False),
        ("strict", "inst_acc", 101.04, False),
        ("compat", "l_f1", 104.97, True),
        ("compat", "l_f1", 105.0, False),
        ("strict", "l_f1", 104.97, False),
        ("compat", "c_f1", 100.0, True),
        ("compat", "c_f1", 100.1, False),
        ("compat", "ans_acc", -0.1, False),
    ],
)
def test_a_value_must_be_reachable(scoring: str, metric: str, value: float, fits: bool) -> None:
    assert checks(with_one(metric, value, scoring=scoring)) == (
        [] if fits else [("out-of-range", metric)]
    )


def test_a_root_score_ends_at_ten() -> None:
    assert checks(entry("workflow", root_score=10.0)) == []
    assert checks(entry("workflow", root_score=10.1)) == [("out-of-range", "root_score")]


def test_right_arguments_need_the_right_tool() -> None:
    assert checks(entry(tool_acc=10.05, arg_acc=10.05)) == []
    assert checks(entry(tool_acc=10.05, arg_acc=10.77)) == [("arg-above-tool", "arg_acc")]


@pytest.mark.parametrize(
    ("answer", "both", "fits"),
    [
        # Σ answers / 229 at least; with all 57 image tasks at most.
        (46.59, 44.90, True),
        (100.0, 75.11, True),
        (100.0, 75.09, False),
        (0.0, 24.89, True),
        (0.0, 24.91, False),
        (23.44, 14.47, False),
        (17.06, 11.94, False),
        # At the bound: rounding of both numbers is allowed for.
        (10.56, 7.93, True),
        (10.56, 7.92, False),
    ],
)
def test_answers_with_images_lie_between_their_bounds(
    answer: float, both: float, fits: bool
) -> None:
    found = checks(entry(ans_acc=answer, ans_acc_i=both))
    assert found == ([] if fits else [("ans-acc-i-bound", "ans_acc_i")])


def test_a_finding_says_the_fact_and_not_whose_it_is() -> None:
    (finding,) = check_entry(entry(inst_acc=23.23))
    assert finding.message == (
        "InstAcc 23.23 is no k/729; the nearest are 23.18 (169/729) and 23.32 (170/729)"
    )


def test_the_denominators_are_those_of_the_released_data(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    tasks = atomic_tasks.values()
    calls = sum(len(task.calls) for task in tasks)
    answers = sum(task.answer is not None for task in tasks)
    published = entry()
    found = {name: find_denominator(published, name) for name in get_args(MetricName)}
    assert {name: n for name, n in found.items() if n is not None} == {
        "inst_acc": calls + answers,
        "tool_acc": calls,
        "arg_acc": calls,
    }
    assert ANS_ACC.released["atomic"] == answers
    assert ANS_ACC_I.released["atomic"] == len(tasks)
    counted = [strict_steps.count_task(task, None, similarity=lambda _a, _b: 0.0) for task in tasks]
    turns = find_denominator(published.model_copy(update={"scoring": "strict"}), "inst_acc")
    assert sum(one.inst_total for one in counted) == turns == 770
    assert (answers, len(tasks)) == (172, 229)


def test_the_highest_f1_is_that_of_every_needed_tool_called_once(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    counts = []
    for task in atomic_tasks.values():
        gold = reference_trace(task)
        once = {step.name: step for step in gold if isinstance(step, CallStep)}
        counts.append(
            end_to_end.count_task(
                tuple(once.values()), gold, task.answer, similarity=lambda _a, _b: 0.0
            )
        )
    scores = end_to_end.pool(counts)
    for row in F1S:
        top = 100.0 if row.compat_top is None else row.compat_top
        assert getattr(scores, row.name) == pytest.approx(top, abs=1e-3)
