"""End-to-end mode, strict: multiset F1, answers only where there is one, images call by call."""

from collections.abc import Mapping

import pytest

from gta_bench.metrics.similarity import exact_or_half
from gta_bench.metrics.strict.end_to_end import count_task, pool
from gta_bench.records.atomic import AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.scores import CategoryCounts, StrictEndToEndCounts, StrictEndToEndScores
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    ThoughtStep,
    Trace,
)
from tests.metrics.atomic_variants import (
    FAILURE,
    call,
    make_task,
    once,
    score_end_to_end_strict,
    traces_of,
)

FIVE = WhitelistAnswer(whitelist=(("5",),))
SAID = AnswerStep(content="it is 5")


def count(prediction: Trace | None, task: AtomicTask) -> StrictEndToEndCounts:
    return count_task(task, prediction, similarity=exact_or_half)


def ratios(scores: StrictEndToEndScores) -> tuple[float | None, ...]:
    f1 = (scores.p_f1, scores.o_f1, scores.l_f1, scores.c_f1)
    return (scores.ans_acc, scores.ans_acc_i, *f1)


@pytest.mark.parametrize(
    ("last", "value"),
    [
        (SAID, 1.0),
        (AnswerStep(content="it is 6"), 0.0),
        (AnswerStep(content=" "), 0.0),
        (AnswerStep(content="5", error=FAILURE), 0.0),
        (AnswerStep(content="[LagentAgentError] 5"), 0.0),
        (ThoughtStep(content="5"), 0.0),
        (MalformedStep(content="5", reason="no marker"), 0.0),
        (call("OCR"), 0.0),
        (ReplyStep(), 0.0),
    ],
)
def test_the_last_step_must_be_an_answer(last: PredictedStep, value: float) -> None:
    counts = count((SAID, last), make_task(SAID, answer=FIVE))
    assert counts.answer_sum == value
    assert (counts.answer_total, counts.answer_i_total) == (1, 1)


@pytest.mark.parametrize("prediction", [None, ()])
def test_no_steps_are_no_answer(prediction: Trace | None) -> None:
    counts = count(prediction, make_task(SAID, answer=FIVE))
    assert (counts.answer_sum, counts.answer_total) == (0.0, 1)
    assert counts.predicted is (prediction is not None)


def test_an_answer_counts_even_where_the_reference_has_no_answer_turn() -> None:
    """End to end nothing keeps a system from answering task 115."""
    assert count((SAID,), make_task(call("OCR"), answer=FIVE)).answer_sum == 1.0


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["OCR"], CategoryCounts(gold=3, predicted=1, hits=1)),
        (["OCR", "OCR"], CategoryCounts(gold=3, predicted=2, hits=2)),
        (["OCR", "OCR", "OCR", "TextToBbox"], CategoryCounts(gold=3, predicted=4, hits=3)),
        (["TextToBbox", "TextToBbox"], CategoryCounts(gold=3, predicted=2, hits=1)),
        (["Plot", "Teleport", "NoAction"], CategoryCounts(gold=3, predicted=0, hits=0)),
    ],
)
def test_each_call_hits_at_most_one_call_of_the_reference(
    names: list[str], expected: CategoryCounts
) -> None:
    task = make_task(call("OCR"), call("OCR"), call("TextToBbox"))
    counts = count(tuple(call(name) for name in names), task)
    assert counts.categories["perception"] == expected


def test_a_failed_call_is_predicted_but_no_hit() -> None:
    counts = count((call("OCR", FAILURE), call("OCR")), make_task(call("OCR"), call("OCR")))
    assert counts.categories["perception"] == CategoryCounts(gold=2, predicted=2, hits=1)
    assert (counts.tool_call, counts.tool_call_error) == (2, 1)


def test_f1_is_twice_the_hits_among_the_calls_of_both_sides() -> None:
    task = make_task(call("OCR"), call("OCR"), call("OCR"))
    assert pool([count((call("OCR"),), task)]).p_f1 == 50.0
    over = pool([count((call("OCR"),) * 9, task)])
    assert over.p_f1 == 50.0


def test_a_category_that_nobody_needs_or_calls_has_no_f1() -> None:
    task = make_task(call("OCR"))
    assert ratios(pool([count((call("OCR"), call("Plot")), task)]))[2:] == (100.0, None, 0.0, None)


IMAGE_TASK = make_task(call("OCR"), call("DrawBox", bbox="(1, 2)"), call("DrawBox", bbox="(3, 4)"))


@pytest.mark.parametrize(
    ("calls", "value"),
    [
        ((call("DrawBox", bbox="(1, 2)"), call("DrawBox", bbox="(3, 4)")), 1.0),
        ((call("DrawBox", bbox="(3,4)"), call("DrawBox", bbox="[1, 2]")), 1.0),
        ((call("DrawBox", bbox="(1, 2)"),), 0.5),
        ((call("DrawBox", bbox="(1, 2)"), call("DrawBox", bbox="(1, 2)")), 0.5),
        ((call("DrawBox", bbox="(1, 2)"), call("DrawBox", FAILURE, bbox="(3, 4)")), 0.5),
        ((call("AddText", bbox="(1, 2)"),), 0.0),
        ((call("DrawBox", bbox="(5, 6)"),), 0.0),
        ((), 0.0),
    ],
)
def test_an_image_task_is_worth_the_mean_of_its_image_calls_each_with_its_own_partner(
    calls: tuple[CallStep, ...], value: float
) -> None:
    counts = count(calls, IMAGE_TASK)
    assert (counts.image_sum, counts.answer_i_total, counts.answer_total) == (value, 1, 0)


def test_a_task_with_nothing_to_measure_is_in_no_denominator() -> None:
    counts = count((SAID,), make_task(call("OCR")))
    assert (counts.answer_i_total, counts.image_sum) == (0, 0.0)
    assert ratios(pool([counts]))[:2] == (None, None)


def test_an_answered_task_earns_nothing_for_images() -> None:
    task = make_task(call("Plot"), SAID, answer=FIVE)
    assert count((call("Plot"),), task).image_sum == 0.0


def test_no_similarity_lifts_a_score_above_1() -> None:
    task = make_task(SAID, answer=FreeTextAnswer(references=("five",)))
    assert count_task(task, (SAID,), similarity=lambda a, b: 1.5).answer_sum == 1.0


def test_malformed_replies_are_counted() -> None:
    prediction: Trace = (
        MalformedStep(content="", reason="empty"),
        call("NoAction", FAILURE, text=""),
        AnswerStep(content=""),
    )
    counts = count(prediction, IMAGE_TASK)
    assert (counts.malformed, counts.tool_call, counts.tool_call_error) == (3, 0, 0)


def test_a_missing_prediction_is_a_failure_and_seen_in_n() -> None:
    task = make_task(call("OCR"), SAID, answer=FIVE)
    scores = score_end_to_end_strict({"a": task, "b": task}, {"a": (call("OCR"), SAID)})
    assert (scores.ans_acc, scores.ans_acc_i) == (50.0, 50.0)
    assert scores.p_f1 == 2 / 3 * 100
    assert (scores.n, scores.n_tasks) == (1, 2)


def test_without_tasks_there_is_no_number() -> None:
    assert ratios(pool([])) == (None,) * 6


def test_gold_gives_100_for_every_f1(atomic_tasks: Mapping[str, AtomicTask]) -> None:
    scores = score_end_to_end_strict(atomic_tasks, traces_of(atomic_tasks))
    assert ratios(scores)[2:] == (100.0,) * 4
    # 154 whitelists, 3 free texts word for word and 13 others at 0.5; all 57 images.
    assert scores.ans_acc == (154 + 3 + 13 / 2) / 172 * 100
    assert scores.ans_acc_i == (154 + 3 + 13 / 2 + 57) / 229 * 100
    assert (scores.tool_call, scores.tool_call_error, scores.malformed) == (557, 0, 0)


@pytest.mark.parametrize("trace", [None, (), (AnswerStep(content=" "),)])
def test_silence_gives_0_everywhere(
    atomic_tasks: Mapping[str, AtomicTask], trace: Trace | None
) -> None:
    silent = {} if trace is None else dict.fromkeys(atomic_tasks, trace)
    scores = score_end_to_end_strict(atomic_tasks, silent)
    assert ratios(scores) == (0.0,) * 6
    assert (scores.tool_call, scores.tool_call_error) == (0, 0)


def test_calling_every_needed_tool_once_stays_below_100(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    scores = score_end_to_end_strict(atomic_tasks, once(atomic_tasks))
    f1 = [scores.p_f1, scores.o_f1, scores.l_f1, scores.c_f1]
    assert [f"{value:.2f}" for value in f1] == ["95.37", "95.42", "95.03", "100.00"]
    assert scores.tool_call == 510
