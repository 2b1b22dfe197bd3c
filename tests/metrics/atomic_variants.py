"""Made-up tasks, and prediction sets derived from the reference in a fixed way."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

import gta_bench.metrics.compat.end_to_end as compat_end_to_end
import gta_bench.metrics.compat.steps as compat_steps
import gta_bench.metrics.strict.end_to_end as strict_end_to_end
import gta_bench.metrics.strict.steps as strict_steps
from gta_bench.metrics.reference import reference_steps, reference_trace
from gta_bench.metrics.similarity import exact_or_half
from gta_bench.records.atomic import Answer, AtomicTask, FreeTextAnswer, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ToolCall, Turn, UserTurn
from gta_bench.records.scores import (
    EndToEndScores,
    StepScores,
    StrictEndToEndScores,
    StrictStepScores,
)
from gta_bench.records.steps import AnswerStep, CallStep, PredictedStep, StepError, Trace
from gta_bench.records.tools import ToolSpec

VECTORS = Path(__file__).parents[1] / "parity" / "upstream_vectors.json"
FAILURE = StepError(type="API_ERROR", message="the tool broke")

Traces = Mapping[str, Trace]


def vectors(name: str) -> list[Any]:
    """Cases recorded from upstream's own code."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))[name]
    assert isinstance(cases, list)
    return cases


def read_answer(raw: str) -> Answer | None:
    """A reference answer as the vectors store it."""
    value = json.loads(raw)
    if isinstance(value, list):
        return FreeTextAnswer(references=tuple(value))
    return None if value is None else WhitelistAnswer.model_validate(value)


def call(name: str, error: StepError | None = None, **arguments: JsonValue) -> CallStep:
    return CallStep(name=name, arguments=arguments, error=error)


def make_task(
    *steps: CallStep | AnswerStep,
    answer: Answer | None = None,
    tools: tuple[ToolSpec, ...] = (),
    id: str = "0",
) -> AtomicTask:
    """A task whose reference dialogue is these steps."""
    dialogue: list[Turn] = [UserTurn(content="Do it.")]
    for step in steps:
        if isinstance(step, CallStep):
            assert isinstance(step.arguments, dict)
            dialogue.append(CallTurn(call=ToolCall(name=step.name, arguments=step.arguments)))
        else:
            dialogue.append(AnswerTurn(content=step.content))
    return AtomicTask(id=id, tools=tools, attachments=(), dialogue=tuple(dialogue), answer=answer)


def score_steps_compat(tasks: Mapping[str, AtomicTask], traces: Traces) -> StepScores:
    """Upstream's step scores; tasks without prediction are left out, as upstream does."""
    return compat_steps.pool(
        compat_steps.count_task(
            traces[name], reference_steps(task), task.answer, similarity=exact_or_half
        )
        for name, task in tasks.items()
        if name in traces
    )


def score_end_to_end_compat(tasks: Mapping[str, AtomicTask], traces: Traces) -> EndToEndScores:
    """Upstream's end-to-end scores; tasks without prediction are left out, as upstream does."""
    return compat_end_to_end.pool(
        compat_end_to_end.count_task(
            traces[name], reference_trace(task), task.answer, similarity=exact_or_half
        )
        for name, task in tasks.items()
        if name in traces
    )


def score_steps_strict(tasks: Mapping[str, AtomicTask], traces: Traces) -> StrictStepScores:
    """The strict step scores; a task without prediction fails, an unknown task does not count."""
    return strict_steps.pool(
        strict_steps.count_task(task, traces.get(name), similarity=exact_or_half)
        for name, task in tasks.items()
    )


def score_end_to_end_strict(
    tasks: Mapping[str, AtomicTask], traces: Traces
) -> StrictEndToEndScores:
    """The strict end-to-end scores, joined by task in the same way."""
    return strict_end_to_end.pool(
        strict_end_to_end.count_task(task, traces.get(name), similarity=exact_or_half)
        for name, task in tasks.items()
    )


def steps_of(tasks: Mapping[str, AtomicTask]) -> dict[str, Trace]:
    """The reference fed back, step mode."""
    return {name: reference_steps(task) for name, task in tasks.items()}


def traces_of(tasks: Mapping[str, AtomicTask]) -> dict[str, Trace]:
    """The reference fed back, end to end."""
    return {name: reference_trace(task) for name, task in tasks.items()}


def once(tasks: Mapping[str, AtomicTask]) -> dict[str, Trace]:
    """Every tool that the reference needs, called once, without arguments or answer."""
    return {
        name: tuple(call(tool) for tool in dict.fromkeys(turn.call.name for turn in task.calls))
        for name, task in tasks.items()
    }


def changed(traces: Traces, change: Callable[[PredictedStep], PredictedStep]) -> dict[str, Trace]:
    """The same traces with every step changed alike."""
    return {name: tuple(change(step) for step in trace) for name, trace in traces.items()}


def every_third_call_failed(traces: Traces) -> dict[str, Trace]:
    """The first call, the fourth and so on carry an error, counted over all tasks in order."""
    number = 0

    def fail(step: PredictedStep) -> PredictedStep:
        nonlocal number
        if not isinstance(step, CallStep):
            return step
        number += 1
        return step.model_copy(update={"error": FAILURE}) if number % 3 == 1 else step

    return changed(traces, fail)


def answers(traces: Traces, change: Callable[[str], str]) -> dict[str, Trace]:
    """The same traces with every answer's text changed."""
    return changed(
        traces,
        lambda step: (
            step.model_copy(update={"content": change(step.content)})
            if isinstance(step, AnswerStep)
            else step
        ),
    )


def arguments(traces: Traces, change: Callable[[Any], Any]) -> dict[str, Trace]:
    """The same traces with every argument's value changed."""

    def change_call(step: PredictedStep) -> PredictedStep:
        if not isinstance(step, CallStep):
            return step
        assert isinstance(step.arguments, dict)
        values = {name: change(value) for name, value in step.arguments.items()}
        return step.model_copy(update={"arguments": values})

    return changed(traces, change_call)


def without_every_fourth(traces: Traces) -> dict[str, Trace]:
    """The first task, the fifth and so on have no prediction."""
    return {name: trace for number, (name, trace) in enumerate(traces.items()) if number % 4}


def only(tasks: Mapping[str, AtomicTask], names: Iterable[str]) -> dict[str, AtomicTask]:
    return {name: tasks[name] for name in names}
