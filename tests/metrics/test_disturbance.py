from collections.abc import Sequence

from gta_bench.metrics.run_scores import count_disturbance
from gta_bench.records.calls import CallRecord
from gta_bench.records.scores import Disturbance
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    StepError,
)
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import AtomicUnit
from tests.metrics.atomic_variants import make_task

OCR = CallStep(name="OCR", arguments={"image": "inputs/a.jpg"})
OTHER = CallStep(name="OCR", arguments={"image": "inputs/b.jpg"})
FAULT = CallRecord(tool="OCR", status="error", seconds=0, control="fault")
DONE = CallRecord(tool="OCR", status="done", seconds=0)


def counted(steps: Sequence[PredictedStep] | None, *calls: CallRecord) -> Disturbance:
    task = make_task(OCR, AnswerStep(content="7"), tools=(ToolSpec(name="OCR"),))
    trace = None if steps is None else tuple(steps)
    return count_disturbance(AtomicUnit(task=task, trace=trace, calls=calls))


def test_what_tape_and_controls_did_is_counted_by_kind() -> None:
    calls = (
        DONE.model_copy(update={"taped": "replayed", "control": "corrupted"}),
        CallRecord(tool="Lure", status="unavailable", seconds=0, taped="missing"),
        DONE,
    )
    steps: list[PredictedStep] = [step for _ in calls for step in (OCR, ReplyStep())]
    assert counted(steps, *calls) == Disturbance(
        replayed=1, missing=1, corrupted=1, faults=0, recovered=0, distracted=1
    )


def test_a_distractor_whose_arguments_are_refused_counts_and_an_unknown_tool_does_not() -> None:
    refused = CallStep(name="Lure", arguments={}, error=StepError(type="ARGS_ERROR", message="no"))
    unknown = CallStep(name="Luer", arguments={}, error=StepError(type="API_ERROR", message="no"))
    assert counted([refused, unknown, refused]).distracted == 2


def test_a_fault_is_recovered_by_the_same_call_that_comes_through() -> None:
    replied: list[PredictedStep] = [OCR, ReplyStep()]
    assert counted([*replied, *replied], FAULT, DONE).recovered == 1
    assert counted([*replied, *replied, *replied], FAULT, FAULT, DONE).recovered == 2
    assert counted([*replied, OTHER, ReplyStep()], FAULT, DONE).recovered == 0
    assert counted([*replied, *replied], FAULT, FAULT).recovered == 0
    assert counted([*replied, *replied], DONE, FAULT) == Disturbance(faults=1)


def test_replies_that_reached_no_tool_do_not_shift_the_calls() -> None:
    refused: list[PredictedStep] = [MalformedStep(content="", reason="empty"), OTHER]
    steps: list[PredictedStep] = [
        OCR,
        ReplyStep(),
        *refused,
        OCR,
        ReplyStep(),
        AnswerStep(content="7"),
    ]
    assert counted(steps, FAULT, DONE).recovered == 1


def test_a_unit_without_a_trace_has_nothing_to_count() -> None:
    assert counted(None) == Disturbance()
