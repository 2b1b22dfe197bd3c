"""One first cause for everything that failed, and nothing for what did not."""

from collections.abc import Mapping

import pytest

from gta_bench.metrics.failures import count_failures
from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.atomic import AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.calls import CallRecord
from gta_bench.records.failures import Failure, FailureCause
from gta_bench.records.files import Deliverable
from gta_bench.records.run import Mode
from gta_bench.records.scores import RunScores, StrictStepCounts
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    StepError,
    ThoughtStep,
    Trace,
)
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from tests.metrics.atomic_variants import make_task
from tests.metrics.workflow_units import SEVEN, rows, unit

OCR = CallStep(name="OCR", arguments={"image": "inputs/a.jpg"})
SUM = CallStep(name="Calculator", arguments={"expression": "2+3"})
SAID = AnswerStep(content="it is 5")
FIVE = WhitelistAnswer(whitelist=(("5",),))
TOOLS = tuple(
    ToolSpec(name=name, description="", inputs=(), outputs=()) for name in ("OCR", "Calculator")
)
TASK = make_task(OCR, SUM, SAID, answer=FIVE).model_copy(update={"tools": TOOLS})
EMPTY = MalformedStep(content="", reason="the reply is empty")
CRASH = AnswerStep(content="[LagentAgentError] HTTPError: 503")
FILE = Deliverable(path="a.pdf", digest="0" * 64, size=1)


def failed(step: CallStep, kind: str) -> CallStep:
    return step.model_copy(update={"error": StepError(type=kind, message="broke")})


def scored(units: list[AtomicUnit], mode: Mode) -> RunScores:
    return score_run(
        units, mode, similarity=exact_or_half, similarity_name="exact-or-half", comparable=False
    )


def atomic(
    trace: Trace | None, mode: Mode, task: AtomicTask = TASK, **changes: object
) -> tuple[tuple[str, FailureCause], ...]:
    made = AtomicUnit.model_validate({"task": task, "trace": trace, **changes})
    return tuple((one.place, one.cause) for one in scored([made], mode).failures)


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        (SUM, None),
        (EMPTY, "format"),
        (ThoughtStep(content="hm"), "format"),
        (AnswerStep(content="", error=StepError(type="failed")), "format"),
        (CRASH, "infrastructure"),
        (SAID, "wrong tool"),
        (OCR, "wrong tool"),
        (failed(OCR, "ARGS_ERROR"), "wrong tool"),
        (failed(SUM, "ARGS_ERROR"), "arguments"),
        (failed(SUM, "API_ERROR"), "tool error"),
        (failed(SUM, "UNAVAILABLE"), "tool unavailable"),
        (CallStep(name="Calculator", arguments={"expression": "5"}), "arguments"),
    ],
)
def test_a_wrong_step_has_one_cause(second: PredictedStep, cause: FailureCause | None) -> None:
    expected = () if cause is None else (("step 2", cause),)
    assert atomic((OCR, second, SAID), "step") == expected


def test_the_answer_turn_of_a_step_run() -> None:
    assert atomic((OCR, SUM, AnswerStep(content="6")), "step") == (("step 3", "wrong content"),)
    assert atomic((OCR, SUM, OCR), "step") == (("step 3", "wrong tool"),)
    assert atomic((OCR, SUM), "step") == (("step 3", "format"),)
    free = TASK.model_copy(update={"answer": FreeTextAnswer(references=("five",))})
    assert atomic((OCR, SUM, SAID), "step", free) == ()
    image = TASK.model_copy(update={"answer": None})
    assert atomic((OCR, SUM, AnswerStep(content="here")), "step", image) == ()


def test_a_unit_that_broke_through_no_fault_of_the_system_is_infrastructure() -> None:
    assert atomic(None, "step", failure="no connection") == (("task", "infrastructure"),)
    assert atomic(None, "end-to-end", failure="x") == (("task", "infrastructure"),)


WRONG = AnswerStep(content="it is 6")
ELSE = CallStep(name="Draw", arguments={})


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        ((OCR, ReplyStep(), SUM, ReplyStep(), SAID), None),
        (None, "format"),
        ((ThoughtStep(content="hm"),), "format"),
        ((OCR, EMPTY), "format"),
        ((OCR, CRASH), "infrastructure"),
        ((OCR, SUM, WRONG), "wrong content"),
        ((OCR, WRONG), "wrong tool"),
        ((OCR, failed(SUM, "TOOL_ERROR"), WRONG), "tool error"),
        ((failed(OCR, "UNAVAILABLE"), WRONG), "tool unavailable"),
        ((OCR, failed(SUM, "ARGS_ERROR"), failed(SUM, "TOOL_ERROR"), WRONG), "arguments"),
        ((OCR, failed(SUM, "TOOL_ERROR"), SUM, WRONG), "wrong content"),
        ((OCR, SUM, ReplyStep()), "turn limit"),
        ((OCR, failed(ELSE, "API_ERROR"), SUM, WRONG), "wrong content"),
    ],
)
def test_a_task_end_to_end_has_one_cause(trace: Trace | None, cause: FailureCause | None) -> None:
    expected = () if cause is None else (("task", cause),)
    assert atomic(trace, "end-to-end") == expected


@pytest.mark.parametrize("trace", [(), (OCR, ReplyStep())])
def test_a_dialogue_that_outgrew_the_window_did_not_use_up_its_turns(trace: Trace) -> None:
    assert atomic(trace, "end-to-end", stops=("context",)) == (("task", "context"),)


def test_an_image_that_was_asked_for_otherwise() -> None:
    draw = CallStep(name="DrawBox", arguments={"bbox": "(1, 2, 3, 4)"})
    task = make_task(draw, SAID).model_copy(update={"answer": None})
    other = CallStep(name="DrawBox", arguments={"bbox": "(9, 9, 9, 9)"})
    assert atomic((other, SAID), "end-to-end", task) == (("task", "arguments"),)
    assert atomic((draw, SAID), "end-to-end", task) == ()


def test_a_task_that_nothing_can_be_measured_of_does_not_fail() -> None:
    task = make_task(OCR, SAID).model_copy(update={"answer": None})
    assert atomic((SAID,), "end-to-end", task) == ()


@pytest.mark.parametrize("mode", ["step", "end-to-end"])
def test_the_reference_fails_only_where_the_release_contradicts_itself(
    mode: Mode, atomic_tasks: Mapping[str, AtomicTask]
) -> None:
    """Task 211's own answer is not on its whitelist, task 115's dialogue has none."""
    made = reference_steps if mode == "step" else reference_trace
    scores = scored(
        [AtomicUnit(task=task, trace=made(task)) for task in atomic_tasks.values()], mode
    )
    wrong = {"211"} if mode == "step" else {"115", "211"}
    assert {one.task for one in scores.failures} == wrong


def test_calls_that_fail_are_those_that_arg_acc_misses(
    atomic_tasks: Mapping[str, AtomicTask],
) -> None:
    """Predictions shifted by a step: every kind of mistake, on all released tasks."""
    units = [
        AtomicUnit(task=task, trace=reference_steps(task)[1:] + reference_steps(task)[:1])
        for task in atomic_tasks.values()
    ]
    scores = scored(units, "step")
    missed = 0
    for counts in (one.strict for one in scores.units):
        assert isinstance(counts, StrictStepCounts)
        missed += counts.call_total - counts.arg_hits
    calls = {
        (task.id, f"step {number}")
        for task in atomic_tasks.values()
        for number, step in enumerate(reference_steps(task), start=1)
        if isinstance(step, CallStep)
    }
    assert sum((one.task, one.place) in calls for one in scores.failures) == missed > 0


GOOD = {"a1": 9.0, "a2": 9.0, "b": 9.0}


def leaf(
    made: WorkflowUnit, verdicts: Mapping[str, float | str]
) -> tuple[tuple[str, FailureCause], ...]:
    given: list[VerdictRow] = list(rows(verdicts))
    judge = score_workflow([made], given, thresholds=SEVEN).judges[0]
    return tuple((one.place, one.cause) for one in judge.failures)


@pytest.mark.parametrize(
    ("changes", "value", "cause"),
    [
        ({}, 9.0, None),
        ({"deliverables": (FILE,)}, 2.0, "wrong content"),
        ({}, 2.0, "missing deliverable"),
        ({"trace": (EMPTY,)}, 2.0, "format"),
        ({"trace": (CRASH,)}, 2.0, "infrastructure"),
        ({"trace": (EMPTY,), "deliverables": (FILE,)}, 2.0, "wrong content"),
        ({"trace": (OCR,), "deliverables": (FILE,)}, 2.0, "turn limit"),
        ({"trace": (OCR,), "stops": ("context",)}, 2.0, "context"),
        ({"trace": (failed(OCR, "TOOL_ERROR"), SAID)}, 2.0, "tool error"),
        ({"trace": (failed(ELSE, "API_ERROR"), SAID)}, 2.0, "wrong tool"),
        (
            {"calls": (CallRecord(tool="OCR", status="unavailable", seconds=0),)},
            2.0,
            "tool unavailable",
        ),
        (
            {
                "deliverables": (FILE,),
                "calls": (
                    CallRecord(tool="OCR", status="error", seconds=0),
                    CallRecord(tool="OCR", status="done", seconds=0),
                ),
            },
            2.0,
            "wrong content",
        ),
        ({}, "timeout", "judge unscored"),
        ({}, "evidence_failed", "infrastructure"),
        ({"failure": "no connection"}, 9.0, "infrastructure"),
    ],
)
def test_a_failed_leaf_has_one_cause(
    changes: dict[str, object], value: float | str, cause: FailureCause | None
) -> None:
    made = unit("1", **changes)
    task = made.task.model_copy(update={"request": "Write a report."})
    found = leaf(made.model_copy(update={"task": task}), {**GOOD, "b": value})
    assert ("b", cause) in found if cause is not None else found == ()


def test_a_task_that_asks_for_no_file_misses_none() -> None:
    assert leaf(unit(), {**GOOD, "b": 1.0}) == (("b", "wrong content"),)


def test_counts_have_the_most_frequent_cause_first_and_tasks_once() -> None:
    failures = [
        Failure(task=task, epoch=1, place=place, cause=cause)
        for task, place, cause in (
            ("1", "step 1", "wrong content"),
            ("1", "step 2", "arguments"),
            ("2", "step 1", "arguments"),
            ("2", "step 2", "arguments"),
            ("3", "step 2", "format"),
        )
    ]
    counted = [(one.cause, one.failures, one.tasks) for one in count_failures(failures)]
    assert counted == [("arguments", 3, 2), ("format", 1, 1), ("wrong content", 1, 1)]
    assert count_failures([]) == ()


def test_long_words_are_cut() -> None:
    long = MalformedStep(content="", reason="x " * 200)
    made = AtomicUnit(task=TASK, trace=(OCR, SUM, long))
    assert len(scored([made], "step").failures[0].detail) == 121
