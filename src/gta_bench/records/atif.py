"""A trace as an ATIF trajectory (Harbor's Agent Trajectory Interchange Format), and back.

What ATIF has no word for stands under `extra` of its step: which of our steps it was, why a reply
was malformed, what a call failed with, and the typed parts of a tool's reply.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from gta_bench.records.base import Record
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyPart,
    ReplyStep,
    StepError,
    ThoughtStep,
    Trace,
)

SCHEMA: Literal["ATIF-v1.7"] = "ATIF-v1.7"
Extra = Mapping[str, JsonValue]
_PARTS = TypeAdapter[tuple[ReplyPart, ...]](tuple[ReplyPart, ...])


class _Foreign(BaseModel):
    """A part of a trajectory that others may have written: keys that we do not know are passed."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class AtifCall(_Foreign):
    """A tool call."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, JsonValue]
    extra: Extra | None = None


class AtifResult(_Foreign):
    """What a call gave back, as text."""

    source_call_id: str | None = None
    content: JsonValue = None
    extra: Extra | None = None


class AtifObservation(_Foreign):
    """What the environment said to a step."""

    results: tuple[AtifResult, ...]


class AtifStep(_Foreign):
    """One turn of the user or of the agent."""

    step_id: int
    source: Literal["system", "user", "agent"]
    message: JsonValue
    reasoning_content: str | None = None
    tool_calls: tuple[AtifCall, ...] | None = None
    observation: AtifObservation | None = None
    extra: Extra | None = None


class AtifAgent(_Foreign):
    """The system that was at work."""

    name: str
    version: str
    model_name: str | None = None


class AtifMetrics(_Foreign):
    """What the whole trajectory took."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None


class Trajectory(_Foreign):
    """A whole trajectory; `extra` names our dataset, task and epoch."""

    schema_version: str = SCHEMA
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: AtifAgent
    steps: tuple[AtifStep, ...]
    final_metrics: AtifMetrics | None = None
    extra: Extra | None = None


class _Marks(Record):
    """What we keep under `extra` of a step or a call."""

    step: Literal["thought", "answer", "malformed"] | None = None
    reason: str | None = None
    error: StepError | None = None
    arguments: JsonValue = None


def write_steps(request: str, trace: Sequence[PredictedStep]) -> tuple[AtifStep, ...]:
    """The user's request, then a step for each that the system took, with the replies to it."""
    written = [AtifStep(step_id=1, source="user", message=request)]
    thought: ThoughtStep | None = None
    for step in trace:
        if isinstance(step, ReplyStep) and thought is None:
            written[-1] = _replied(written[-1], step)
            continue
        if thought is not None and isinstance(step, ThoughtStep | ReplyStep):
            written.append(_agent_step(len(written) + 1, None, thought))
            thought = None
        if isinstance(step, ThoughtStep):
            thought = step
        elif isinstance(step, ReplyStep):
            written[-1] = _replied(written[-1], step)
        else:
            written.append(_agent_step(len(written) + 1, step, thought))
            thought = None
    if thought is not None:
        written.append(_agent_step(len(written) + 1, None, thought))
    return tuple(written)


def read_steps(steps: Iterable[AtifStep]) -> Trace:
    """The steps of the agent, with the replies to them; of others' trajectories, what they say."""
    return tuple(found for step in steps for found in _read(step))


def _agent_step(
    number: int, step: CallStep | AnswerStep | MalformedStep | None, thought: ThoughtStep | None
) -> AtifStep:
    calls, message, marks = None, "", _Marks()
    match step:
        case CallStep():
            calls = (_call(f"call-{number}", step),)
        case AnswerStep():
            message, marks = step.content, _Marks(step="answer", error=step.error)
        case MalformedStep():
            message, marks = step.content, _Marks(step="malformed", reason=step.reason)
        case _:
            marks = _Marks(step="thought")
    return AtifStep(
        step_id=number,
        source="agent",
        message=message,
        reasoning_content=None if thought is None else thought.content,
        tool_calls=calls,
        extra=_extra(marks),
    )


def _call(number: str, step: CallStep) -> AtifCall:
    if isinstance(step.arguments, dict):
        marks, arguments = _Marks(error=step.error), step.arguments
    else:
        marks, arguments = _Marks(error=step.error, arguments=step.arguments), {}
    extra = _extra(marks)
    return AtifCall(tool_call_id=number, function_name=step.name, arguments=arguments, extra=extra)


def _replied(step: AtifStep, reply: ReplyStep) -> AtifStep:
    result = AtifResult(
        source_call_id=step.tool_calls[0].tool_call_id if step.tool_calls else None,
        content="\n".join(part.content for part in reply.parts),
        extra={"parts": _PARTS.dump_python(reply.parts, mode="json")},
    )
    before = step.observation.results if step.observation else ()
    return step.model_copy(update={"observation": AtifObservation(results=(*before, result))})


def _extra(marks: _Marks) -> Extra | None:
    return marks.model_dump(mode="json", exclude_none=True) or None


def _read(step: AtifStep) -> Iterator[PredictedStep]:
    """The steps that a step stands for; each call is followed by its own results."""
    results = _name_calls(step)
    if step.source == "agent":
        if step.reasoning_content is not None:
            yield ThoughtStep(content=step.reasoning_content)
        for call in step.tool_calls or ():
            yield _read_call(call)
            own = [result for result in results if result.source_call_id == call.tool_call_id]
            results = [result for result in results if result not in own]
            yield from map(_read_result, own)
        yield from _read_text(step)
    yield from map(_read_result, results)


def _name_calls(step: AtifStep) -> list[AtifResult]:
    """The results of a step; where none names its call, they are in the order of the calls."""
    results = list(step.observation.results) if step.observation else []
    calls = step.tool_calls or ()
    if len(results) != len(calls) or any(result.source_call_id for result in results):
        return results
    return [
        result.model_copy(update={"source_call_id": call.tool_call_id})
        for result, call in zip(results, calls, strict=True)
    ]


def _read_result(result: AtifResult) -> ReplyStep:
    return ReplyStep(parts=_read_parts(result))


def _read_text(step: AtifStep) -> Iterator[PredictedStep]:
    marks = _Marks.model_validate(
        {key: value for key, value in (step.extra or {}).items() if key in _Marks.model_fields}
    )
    text = step.message if isinstance(step.message, str) else ""
    if marks.step == "malformed":
        yield MalformedStep(content=text, reason=marks.reason or "")
    elif marks.step == "answer" or (marks.step is None and text and not step.tool_calls):
        yield AnswerStep(content=text, error=marks.error)


def _read_call(call: AtifCall) -> CallStep:
    marks = _Marks.model_validate(
        {key: value for key, value in (call.extra or {}).items() if key in ("error", "arguments")}
    )
    given = call.arguments if marks.arguments is None else marks.arguments
    return CallStep(name=call.function_name, arguments=given, error=marks.error)


def _read_parts(result: AtifResult) -> tuple[ReplyPart, ...]:
    """Our own parts; of others' trajectories the text."""
    if result.extra is not None and "parts" in result.extra:
        return _PARTS.validate_python(result.extra["parts"])
    text = result.content
    return (ReplyPart(type="text", content=text),) if isinstance(text, str) and text else ()
