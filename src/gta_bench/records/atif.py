"""Convert traces to ATIF (Harbor's Agent Trajectory Interchange Format) and back.

Information that ATIF has no field for goes to the `extra` of a step: the type of our step, why a
reply was malformed, the error of a call, and the typed parts of a tool's reply.
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
    """Part of a trajectory that another program may have written; unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class AtifCall(_Foreign):
    """A tool call."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, JsonValue]
    extra: Extra | None = None


class AtifResult(_Foreign):
    """The result of a call, as text."""

    source_call_id: str | None = None
    content: JsonValue = None
    extra: Extra | None = None


class AtifObservation(_Foreign):
    """The environment's response to a step."""

    results: tuple[AtifResult, ...]


class AtifStep(_Foreign):
    """One turn of the user or of the agent."""

    step_id: int
    source: Literal["system", "user", "agent"]
    message: JsonValue
    reasoning_content: str | None = None
    tool_calls: tuple[AtifCall, ...] | None = None
    observation: AtifObservation | None = None
    is_copied_context: bool | None = None
    extra: Extra | None = None


class AtifAgent(_Foreign):
    """The system that made the trajectory."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: tuple[Mapping[str, JsonValue], ...] | None = None


class AtifMetrics(_Foreign):
    """Tokens, cost and steps of the whole trajectory."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None


class Trajectory(_Foreign):
    """A trajectory; `extra` names our dataset, task and epoch."""

    schema_version: str = SCHEMA
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: AtifAgent
    steps: tuple[AtifStep, ...]
    final_metrics: AtifMetrics | None = None
    extra: Extra | None = None


class _Marks(Record):
    """What we store in the `extra` of a step or a call."""

    step: Literal["thought", "answer", "malformed"] | None = None
    reason: str | None = None
    error: StepError | None = None
    arguments: JsonValue = None


def write_steps(request: str, trace: Sequence[PredictedStep]) -> tuple[AtifStep, ...]:
    """The user's request, then one ATIF step for each step of the system, with its replies."""
    written = [AtifStep(step_id=1, source="user", message=request)]
    thought: ThoughtStep | None = None
    for step in trace:
        if thought is not None and isinstance(step, ThoughtStep | ReplyStep):
            written.append(_agent_step(len(written) + 1, None, thought))
            thought = None
        if isinstance(step, ThoughtStep):
            thought = step
        elif isinstance(step, ReplyStep):
            written[-1] = _add_reply(written[-1], step)
        else:
            written.append(_agent_step(len(written) + 1, step, thought))
            thought = None
    if thought is not None:
        written.append(_agent_step(len(written) + 1, None, thought))
    return tuple(written)


def read_steps(steps: Iterable[AtifStep]) -> Trace:
    """The trace of a trajectory: the agent's steps and the replies to them.

    Our own trajectories are restored without loss; others as far as they state the same facts.
    """
    return tuple(found for step in steps for found in _read_step(step))


def _agent_step(
    number: int, step: CallStep | AnswerStep | MalformedStep | None, thought: ThoughtStep | None
) -> AtifStep:
    calls, message, marks = None, "", _Marks(step="thought")
    match step:
        case CallStep():
            calls, marks = (_write_call(f"call-{number}", step),), _Marks()
        case AnswerStep():
            message, marks = step.content, _Marks(step="answer", error=step.error)
        case MalformedStep():
            message, marks = step.content, _Marks(step="malformed", reason=step.reason)
    return AtifStep(
        step_id=number,
        source="agent",
        message=message,
        reasoning_content=None if thought is None else thought.content,
        tool_calls=calls,
        extra=_extra(marks),
    )


def _write_call(number: str, step: CallStep) -> AtifCall:
    if isinstance(step.arguments, dict):
        marks, arguments = _Marks(error=step.error), step.arguments
    else:
        marks, arguments = _Marks(error=step.error, arguments=step.arguments), {}
    extra = _extra(marks)
    return AtifCall(tool_call_id=number, function_name=step.name, arguments=arguments, extra=extra)


def _add_reply(step: AtifStep, reply: ReplyStep) -> AtifStep:
    result = AtifResult(
        source_call_id=step.tool_calls[0].tool_call_id if step.tool_calls else None,
        content="\n".join(part.content for part in reply.parts),
        extra={"parts": _PARTS.dump_python(reply.parts, mode="json")},
    )
    before = step.observation.results if step.observation else ()
    return step.model_copy(update={"observation": AtifObservation(results=(*before, result))})


def _extra(marks: _Marks) -> Extra | None:
    return marks.model_dump(mode="json", exclude_none=True) or None


def _read_step(step: AtifStep) -> Iterator[PredictedStep]:
    """Our steps for one ATIF step; each call is followed by its own results."""
    results = list(step.observation.results) if step.observation else []
    calls = step.tool_calls or ()
    if len(results) == len(calls) and not any(result.source_call_id for result in results):
        # No result names its call, so they are in the order of the calls.
        results = [
            result.model_copy(update={"source_call_id": call.tool_call_id})
            for result, call in zip(results, calls, strict=True)
        ]
    if step.source == "agent":
        if step.reasoning_content is not None:
            yield ThoughtStep(content=step.reasoning_content)
        for call in calls:
            yield _read_call(call)
            own = [result for result in results if result.source_call_id == call.tool_call_id]
            results = [result for result in results if result not in own]
            yield from map(_read_result, own)
        yield from _read_text(step)
    yield from map(_read_result, results)


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


def _read_result(result: AtifResult) -> ReplyStep:
    """Our own parts, or the text of a trajectory by another program."""
    if result.extra is not None and "parts" in result.extra:
        return ReplyStep(parts=_PARTS.validate_python(result.extra["parts"]))
    texts = _read_content(result.content)
    return ReplyStep(parts=tuple(ReplyPart(type="text", content=text) for text in texts if text))


def _read_content(content: JsonValue) -> list[str]:
    """A text, or the parts of a content that has texts only."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    found = [text for text in texts if isinstance(text, str)]
    return found if len(found) == len(content) else []
