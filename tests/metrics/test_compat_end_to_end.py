"""End-to-end mode gives upstream's numbers, quirks included."""

from collections.abc import Mapping
from typing import Any

import pytest

from gta_bench.metrics.compat.end_to_end import count_task, pool
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.atomic import Answer, AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.scores import CategoryCounts, EndToEndCounts
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    ThoughtStep,
    Trace,
    read_trace,
)
from tests.metrics.atomic_variants import (
    FAILURE,
    call,
    once,
    read_answer,
    score_end_to_end_compat,
    traces_of,
    vectors,
)

CASES = vectors("atomic_end_to_end")
FIVE = WhitelistAnswer(whitelist=(("5",),))
SAID = AnswerStep(content="it is 5")


def count(prediction: Trace, gold: Trace = (), answer: Answer | None = None) -> EndToEndCounts:
    return count_task(prediction, gold, answer, similarity=exact_or_half)


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_set_of_predictions_gets_upstreams_scores(case: dict[str, Any]) -> None:
    counts = [
        count(read_trace(prediction[0]), read_trace(gold[0]), read_answer(reference))
        for prediction, gold, reference in zip(
            case["predictions"], case["gold"], case["references"], strict=True
        )
    ]
    scores, expected = pool(counts), case["metrics"]
    assert scores.ans_acc == pytest.approx(expected["answer_acc"], abs=1e-9)
    assert scores.ans_acc_i == pytest.approx(expected["answer_acc_w_imggen"], abs=1e-9)
    for column in ("p_f1", "o_f1", "l_f1", "c_f1"):
        assert getattr(scores, column) == pytest.approx(expected[column], abs=1e-9)
    assert scores.tool_call == expected["tool_call"]
    assert scores.tool_call_error == expected["tool_call_error"]
    answers = sum(task.answer_sum for task in counts)
    assert answers == expected["total_ansacc"]
    assert answers + sum(task.image_sum for task in counts) == expected["total_ansacc_wimggen"]


def test_all_recorded_sets_are_there() -> None:
    assert len(CASES) == 6


def test_the_reference_fed_back_gets_upstreams_numbers(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    scores = score_end_to_end_compat(atomic_tasks, traces_of(atomic_tasks))
    assert scores.ans_acc == 88.66279069767442
    assert scores.ans_acc_i == pytest.approx(209 / 229 * 100, abs=1e-9)
    for column in ("p_f1", "o_f1", "l_f1", "c_f1"):
        assert getattr(scores, column) == pytest.approx(99.9995, abs=5e-5)
    assert (scores.tool_call, scores.tool_call_error) == (557, 0)


def test_calling_every_needed_tool_once_scores_above_100(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    scores = score_end_to_end_compat(atomic_tasks, once(atomic_tasks))
    assert f"{scores.p_f1:.2f} {scores.o_f1:.2f} {scores.l_f1:.2f}" == "104.63 104.57 104.97"
    assert f"{scores.c_f1:.2f}" == "100.00"
    assert scores.tool_call == 510


def test_one_call_hits_every_repetition_of_the_reference() -> None:
    gold = (call("OCR"), call("OCR"), call("OCR"))
    scores = pool([count((call("OCR"),), gold)])
    assert scores.p_f1 == pytest.approx(149.9993, abs=1e-4)


def test_a_failed_call_is_a_hit_and_an_error() -> None:
    counts = count((call("OCR", FAILURE),), (call("OCR"),))
    assert counts.categories["perception"] == CategoryCounts(gold=1, predicted=1, hits=1)
    assert (counts.tool_call, counts.tool_call_error) == (1, 1)


def test_tools_outside_the_map_are_calls_of_no_category() -> None:
    prediction = (call("Teleport"), MalformedStep(content="", reason="empty"))
    counts = count(prediction, (call("Teleport"),))
    assert set(counts.categories.values()) == {CategoryCounts()}
    assert (counts.tool_call, counts.tool_call_error) == (2, 1)


@pytest.mark.parametrize(
    ("last", "value"),
    [
        (SAID, 1.0),
        (AnswerStep(content="it is 6"), 0.0),
        (AnswerStep(content=""), 0.0),
        (AnswerStep(content="[LagentAgentError] 5", error=FAILURE), 1.0),
        (ThoughtStep(content="5"), 1.0),
        (call("OCR"), 0.0),
        (ReplyStep(), 0.0),
    ],
)
def test_only_the_last_step_is_the_answer(last: PredictedStep, value: float) -> None:
    assert count((SAID, last), (), FIVE).answer_sum == value


def test_an_empty_trace_has_no_answer() -> None:
    assert count((), (), FIVE).answer_sum == 0.0


def test_a_blank_answer_gets_similarity_where_it_is_not_empty() -> None:
    answer = FreeTextAnswer(references=("five",))
    assert count((AnswerStep(content=" "),), (), answer).answer_sum == 0.5
    assert count((AnswerStep(content=""),), (), answer).answer_sum == 0.0


@pytest.mark.parametrize(
    ("calls", "value"),
    [
        ((call("DrawBox", a=1), call("AddText", a=2)), 1.0),
        ((call("DrawBox", a=1), call("AddText", a=3)), 0.5),
        ((call("DrawBox", a=9), call("AddText", a=3)), 0.25),
        ((call("DrawBox", a=1),), 0.0),
        ((call("DrawBox", a=1), call("AddText", FAILURE, a=2)), 0.0),
        ((call("DrawBox", a=1), call("AddText", a=2), call("AddText", a=3)), 0.5),
        ((), 0.0),
    ],
)
def test_an_image_task_is_worth_the_product_over_its_image_calls(
    calls: tuple[CallStep, ...], value: float
) -> None:
    gold = (call("OCR"), call("DrawBox", a=1), call("AddText", a=2))
    counts = count(calls, gold)
    assert (counts.image_sum, counts.answer_sum) == (value, 0.0)
    assert (counts.answer_total, counts.answer_i_total) == (0, 1)


def test_an_image_task_without_image_call_is_given_away() -> None:
    assert count((), (call("OCR"),)).image_sum == 1.0


def test_an_image_task_is_compared_by_the_json_text_of_the_arguments() -> None:
    seen = []

    def remember(left: str, right: str) -> float:
        seen.append((left, right))
        return 1.0

    count_task((call("Plot", b=[1], a="é"),), (call("Plot", a="x"),), None, similarity=remember)
    assert seen == [('{"a": "x"}', '{"b": [1], "a": "\\u00e9"}')]


def test_a_task_with_an_answer_earns_nothing_for_images() -> None:
    assert count((call("Plot", a=1), SAID), (call("Plot", a=1),), FIVE).image_sum == 0.0


def test_without_tasks_there_is_no_number() -> None:
    """A run without any scored unit showed 0.00 under `compat`, and no number under `strict`."""
    scores = pool([])
    assert (scores.ans_acc, scores.ans_acc_i) == (None, None)
    assert (scores.p_f1, scores.o_f1, scores.l_f1, scores.c_f1) == (None,) * 4
    assert (scores.tool_call, scores.tool_call_error) == (0, 0)
    assert (scores.n, scores.n_tasks) == (0, 0)


def test_without_any_hit_f1_is_zero() -> None:
    assert pool([count((), (call("OCR"),))]).p_f1 == 0.0
    assert pool([count((call("OCR"),), ())]).p_f1 == 0.0
