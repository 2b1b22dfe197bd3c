"""Step mode gives upstream's numbers, quirks included."""

from collections.abc import Mapping
from typing import Any

import pytest

from gta_bench.metrics.compat.steps import count_task, pool
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.atomic import Answer, AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.scores import StepCounts
from gta_bench.records.steps import (
    AnswerStep,
    MalformedStep,
    ReplyStep,
    ThoughtStep,
    Trace,
    read_trace,
)
from tests.metrics.atomic_variants import (
    FAILURE,
    call,
    read_answer,
    score_steps_compat,
    steps_of,
    vectors,
)

CASES = vectors("atomic_step")
FIVE = WhitelistAnswer(whitelist=(("5",),))


def count(prediction: Trace, gold: Trace, answer: Answer | None = None) -> StepCounts:
    return count_task(prediction, gold, answer, similarity=exact_or_half)


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_set_of_predictions_gets_upstreams_scores(case: dict[str, Any]) -> None:
    counts = [
        count(read_trace(prediction), read_trace(gold), read_answer(reference))
        for prediction, gold, reference in zip(
            case["predictions"], case["gold"], case["references"], strict=True
        )
    ]
    scores, expected = pool(counts), case["metrics"]
    assert scores.inst_acc == pytest.approx(expected["inst_align"], abs=1e-9)
    assert scores.tool_acc == pytest.approx(expected["tool_acc"], abs=1e-9)
    assert scores.arg_acc == pytest.approx(expected["arg_acc"], abs=1e-9)
    assert scores.summ_acc == pytest.approx(expected["answer_acc"], abs=1e-9)
    assert scores.tool_call == expected["tool_call"]
    assert scores.tool_call_error == expected["tool_call_error"]


def test_all_recorded_sets_are_there() -> None:
    assert len(CASES) == 6


def test_the_reference_fed_back_gets_upstreams_numbers_to_the_last_digit(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    scores = score_steps_compat(atomic_tasks, steps_of(atomic_tasks))
    assert scores.inst_acc == 105.6241426611797
    assert (scores.tool_acc, scores.arg_acc) == (100.0, 100.0)
    assert scores.summ_acc == 88.66279069767442
    assert (scores.tool_call, scores.tool_call_error) == (557, 0)
    assert (scores.n, scores.n_tasks) == (229, 229)


def test_a_failed_call_is_no_type_hit_but_a_tool_and_argument_hit() -> None:
    counts = count((call("OCR", FAILURE, a=1),), (call("OCR", a=1),))
    assert (counts.inst_hits, counts.tool_hits, counts.arg_hits) == (0, 1, 1)
    assert (counts.tool_call, counts.tool_call_error) == (1, 1)


def test_one_and_true_are_equal_arguments() -> None:
    gold = (call("TextToBbox", top1=True, k=1),)
    assert count((call("TextToBbox", top1=1, k=1.0),), gold).arg_hits == 1
    assert count((call("TextToBbox", top1="true", k=1),), gold).arg_hits == 0


def test_a_raw_text_is_never_equal_to_the_arguments() -> None:
    prediction = call("OCR").model_copy(update={"arguments": "{}"})
    assert count((prediction,), (call("OCR"),)).arg_hits == 0


def test_an_answer_in_place_of_a_call_hits_nothing() -> None:
    counts = count((AnswerStep(content="5"),), (call("OCR"),), FIVE)
    assert (counts.inst_hits, counts.tool_hits, counts.answer_sum) == (0, 0, 0.0)
    assert (counts.call_total, counts.inst_total) == (1, 2)


def test_a_call_in_place_of_an_answer_is_only_counted_as_a_call() -> None:
    counts = count((call("OCR"),), (AnswerStep(content="5"),), FIVE)
    assert (counts.inst_hits, counts.answer_sum, counts.tool_call) == (0, 0.0, 1)
    assert counts.call_total == 0


def test_an_empty_answer_is_a_type_hit() -> None:
    counts = count((AnswerStep(content=""),), (AnswerStep(content="5"),), FIVE)
    assert (counts.inst_hits, counts.answer_sum) == (1, 0.0)


def test_an_empty_answer_gets_similarity() -> None:
    answer = FreeTextAnswer(references=("five", "5"))
    counts = count((AnswerStep(content=""),), (AnswerStep(content="5"),), answer)
    assert counts.answer_sum == 0.5


def test_a_crash_text_is_no_type_hit_but_is_scored_as_an_answer() -> None:
    crash = AnswerStep(content="[LagentAgentError] 5", error=FAILURE)
    counts = count((crash,), (AnswerStep(content="5"),), FIVE)
    assert (counts.inst_hits, counts.answer_sum) == (0, 1.0)


def test_a_thought_counts_as_an_answer() -> None:
    counts = count((ThoughtStep(content="it is 5"),), (AnswerStep(content="5"),), FIVE)
    assert (counts.inst_hits, counts.answer_sum) == (1, 1.0)


def test_a_malformed_reply_counts_as_a_failed_call_of_no_tool() -> None:
    counts = count((MalformedStep(content="", reason="empty"),), (call("OCR"),))
    assert (counts.inst_hits, counts.tool_hits) == (0, 0)
    assert (counts.tool_call, counts.tool_call_error) == (1, 1)


def test_a_tools_reply_hits_only_another_reply() -> None:
    assert count((ReplyStep(),), (AnswerStep(content=""),)).inst_hits == 0
    assert count((ReplyStep(),), (ReplyStep(),)).inst_hits == 1


def test_the_last_turn_of_an_image_task_hits_without_being_in_the_denominator() -> None:
    counts = count((AnswerStep(content="done"),), (AnswerStep(content="saved"),), None)
    assert (counts.inst_hits, counts.inst_total) == (1, 0)
    assert (counts.answer_sum, counts.answer_total) == (0.0, 0)


def test_a_list_without_references_counts_as_no_answer() -> None:
    gold = (AnswerStep(content="5"),)
    counts = count((AnswerStep(content="5"),), gold, FreeTextAnswer(references=()))
    assert (counts.answer_total, counts.answer_sum) == (0, 0.0)


def test_a_negative_similarity_counts_as_none() -> None:
    answer = FreeTextAnswer(references=("a", "b"))
    step = (AnswerStep(content="x"),)
    assert count_task(step, step, answer, similarity=lambda a, b: -0.5).answer_sum == 0.0


def test_steps_without_prediction_shrink_the_denominator() -> None:
    gold = (call("OCR"), call("Calculator"), AnswerStep(content="5"))
    counts = count((call("OCR"),), gold, FIVE)
    assert (counts.call_total, counts.inst_total, counts.answer_total) == (1, 2, 1)
    assert count((*gold, call("OCR")), gold, FIVE).tool_call == 2


def test_where_upstream_divides_by_zero_there_is_no_number() -> None:
    scores = pool([])
    assert (scores.inst_acc, scores.tool_acc, scores.arg_acc, scores.summ_acc) == (None,) * 4
    assert (scores.tool_call, scores.n) == (0, 0)
    image_task = pool([count((AnswerStep(content=""),), (AnswerStep(content=""),))])
    assert (image_task.inst_acc, image_task.summ_acc) == (None, None)
