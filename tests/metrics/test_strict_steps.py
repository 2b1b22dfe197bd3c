"""Step mode, strict: total, joined by task, never above 100."""

import dataclasses
from collections.abc import Mapping

import pytest

from gta_bench.metrics.similarity import exact_or_half
from gta_bench.metrics.strict.steps import count_task, pool
from gta_bench.records.atomic import AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.scores import StrictStepCounts, StrictStepScores
from gta_bench.records.steps import AnswerStep, MalformedStep, ThoughtStep, Trace
from gta_bench.records.tools import Parameter, ToolSpec
from tests.metrics.atomic_variants import (
    FAILURE,
    answers,
    call,
    make_task,
    score_steps_strict,
    steps_of,
)

FIVE = WhitelistAnswer(whitelist=(("5",),))
SAID = AnswerStep(content="it is 5")
TASK = make_task(call("OCR", image="inputs/a.jpg"), call("Calculator", expression="2+3"), SAID,
                 answer=FIVE)  # fmt: skip
GOLD: Trace = (call("OCR", image="inputs/a.jpg"), call("Calculator", expression="2+3"), SAID)


@dataclasses.dataclass(frozen=True)
class Hits:
    inst: int = 0
    tool: int = 0
    arg: int = 0
    answer: float = 0.0


def count(prediction: Trace | None, task: AtomicTask = TASK) -> StrictStepCounts:
    return count_task(task, prediction, similarity=exact_or_half)


def hits(prediction: Trace | None) -> Hits:
    counts = count(prediction)
    return Hits(counts.inst_hits, counts.tool_hits, counts.arg_hits, counts.answer_sum)


def ratios(scores: StrictStepScores) -> tuple[float | None, ...]:
    return scores.inst_acc, scores.tool_acc, scores.arg_acc, scores.arg_typed, scores.summ_acc


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (GOLD, Hits(3, 2, 2, 1.0)),
        (None, Hits()),
        ((), Hits()),
        (GOLD[:1], Hits(1, 1, 1)),
        (GOLD[1:], Hits(1)),
        ((*GOLD, call("OCR"), SAID), Hits(3, 2, 2, 1.0)),
        ((call("OCR", FAILURE, image="inputs/a.jpg"), *GOLD[1:]), Hits(2, 1, 1, 1.0)),
        ((call("OCR", image="inputs/b.jpg"), *GOLD[1:]), Hits(3, 2, 1, 1.0)),
        ((call("MathOCR", image="inputs/a.jpg"), *GOLD[1:]), Hits(3, 1, 1, 1.0)),
        ((SAID, SAID, SAID), Hits(1, 0, 0, 1.0)),
        ((*GOLD[:2], AnswerStep(content=" ")), Hits(2, 2, 2)),
        ((*GOLD[:2], AnswerStep(content="5", error=FAILURE)), Hits(2, 2, 2)),
        ((*GOLD[:2], ThoughtStep(content="5")), Hits(2, 2, 2)),
        ((*GOLD[:2], MalformedStep(content="5", reason="no marker")), Hits(2, 2, 2)),
        ((*GOLD[:2], AnswerStep(content="it is 6")), Hits(3, 2, 2)),
        ((*GOLD[:2], call("OCR")), Hits(2, 2, 2)),
    ],
)
def test_hits_need_the_right_step_at_the_right_place_without_error(
    prediction: Trace | None, expected: Hits
) -> None:
    assert hits(prediction) == expected


@pytest.mark.parametrize("prediction", [GOLD, None, (), GOLD[:1], (*GOLD, *GOLD)])
def test_the_denominators_do_not_depend_on_the_prediction(prediction: Trace | None) -> None:
    counts = count(prediction)
    assert (counts.inst_total, counts.call_total, counts.answer_total) == (3, 2, 1)


def test_calls_errors_and_malformed_replies_are_counted_apart() -> None:
    prediction: Trace = (
        call("OCR"),
        call("OCR", FAILURE),
        call("NoAction", FAILURE, text=""),
        MalformedStep(content="", reason="empty"),
        AnswerStep(content=""),
    )
    counts = count(prediction)
    assert (counts.tool_call, counts.tool_call_error, counts.malformed) == (2, 1, 3)


def test_true_is_not_1_among_exact_arguments() -> None:
    task = make_task(call("TextToBbox", top1=True))
    assert count((call("TextToBbox", top1=1),), task).arg_hits == 0
    assert count((call("TextToBbox", top1=True),), task).arg_hits == 1


def test_typed_arguments_are_read_with_the_tasks_own_definition_of_the_tool() -> None:
    spec = ToolSpec(
        name="CountGivenObject",
        inputs=(Parameter(name="image", type="image"), Parameter(name="count", type="int")),
    )
    gold = call("CountGivenObject", image="inputs/a.jpg", count=4)
    prediction = (call("CountGivenObject", image="./inputs/a.jpg", count="4"),)
    assert count(prediction, make_task(gold, tools=(spec,))).arg_typed_sum == 1.0
    counts = count(prediction, make_task(gold))
    assert (counts.arg_typed_sum, counts.arg_hits, counts.tool_hits) == (0.75, 0, 1)


def test_an_image_tasks_last_turn_counts_for_its_type_only() -> None:
    task = make_task(call("Plot"), AnswerStep(content="saved"))
    counts = count((call("Plot"), AnswerStep(content="done")), task)
    assert (counts.inst_hits, counts.inst_total) == (2, 2)
    assert (counts.answer_sum, counts.answer_total) == (0.0, 0)


def test_an_answer_that_no_turn_asks_for_is_not_in_the_denominator() -> None:
    """Task 115 has an answer but its reference ends on a call."""
    task = make_task(call("OCR"), answer=FIVE)
    counts = count((SAID,), task)
    assert (counts.answer_total, counts.answer_sum) == (0, 0.0)


def test_only_the_last_answer_turn_is_scored() -> None:
    task = make_task(SAID, SAID, answer=FIVE)
    counts = count((SAID, SAID), task)
    assert (counts.answer_total, counts.answer_sum) == (1, 1.0)
    assert count((SAID, AnswerStep(content="6")), task).answer_sum == 0.0


def test_no_similarity_lifts_a_score_above_its_denominator() -> None:
    task = make_task(call("Search", q="a"), SAID, answer=FreeTextAnswer(references=("five",)))
    counts = count_task(task, (call("Search", q="b"), SAID), similarity=lambda a, b: 1.5)
    assert (counts.answer_sum, counts.arg_typed_sum) == (1.0, 1.0)
    below = count_task(task, (call("Search", q="b"), SAID), similarity=lambda a, b: -1.5)
    assert (below.answer_sum, below.arg_typed_sum) == (0.0, 0.0)


def test_a_missing_prediction_is_a_failure_and_seen_in_n() -> None:
    tasks = {"a": TASK, "b": TASK}
    scores = score_steps_strict(tasks, {"a": GOLD})
    assert ratios(scores) == (50.0,) * 5
    assert (scores.n, scores.n_tasks) == (1, 2)


def test_a_prediction_for_an_unknown_task_changes_nothing() -> None:
    tasks = {"a": TASK}
    alone = score_steps_strict(tasks, {"a": GOLD})
    assert score_steps_strict(tasks, {"a": GOLD, "z": GOLD}) == alone


def test_without_tasks_there_is_no_number() -> None:
    assert ratios(pool([])) == (None,) * 5
    assert pool([]).n_tasks == 0


def test_gold_gives_100_for_everything_the_reference_fulfils(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    scores = score_steps_strict(atomic_tasks, steps_of(atomic_tasks))
    assert ratios(scores)[:4] == (100.0,) * 4
    # 154 whitelists, 3 free texts word for word and 13 others at 0.5, of 171 answer turns.
    assert scores.summ_acc == (154 + 3 + 13 / 2) / 171 * 100
    assert (scores.tool_call, scores.tool_call_error, scores.malformed) == (557, 0, 0)
    assert (scores.n, scores.n_tasks) == (229, 229)


def test_the_real_denominators_are_770_steps_557_calls_and_171_answers(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    counts = [count(None, task) for task in atomic_tasks.values()]
    assert sum(task.inst_total for task in counts) == 770
    assert sum(task.call_total for task in counts) == 557
    assert sum(task.answer_total for task in counts) == 171


@pytest.mark.parametrize("reply", [None, "", " \n"])
def test_silence_gives_0_everywhere(
    atomic_tasks: Mapping[str, AtomicTask], reply: str | None
) -> None:
    silent: dict[str, Trace] = {}
    if reply is not None:
        silent = {
            name: (AnswerStep(content=reply),) * len(task.steps)
            for name, task in atomic_tasks.items()
        }
    scores = score_steps_strict(atomic_tasks, silent)
    assert ratios(scores) == (0.0,) * 5
    assert (scores.tool_call, scores.tool_call_error) == (0, 0)
    assert scores.malformed == (0 if reply is None else 770)


def test_blank_final_answers_cost_their_turns(atomic_tasks: Mapping[str, AtomicTask]) -> None:
    blank = answers(steps_of(atomic_tasks), lambda text: "")
    scores = score_steps_strict(atomic_tasks, blank)
    assert scores.inst_acc == 557 / 770 * 100
    assert (scores.tool_acc, scores.summ_acc, scores.malformed) == (100.0, 0.0, 213)
