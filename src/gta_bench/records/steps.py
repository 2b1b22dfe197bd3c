"""The steps of a system's trace, which is what gets scored, and their JSON in upstream's files."""

import json
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.tools import ParameterType

# How upstream records a reply in which it found no action.
NO_ACTION: Final = "NoAction"
NO_ACTION_ERROR: Final = "API_ERROR"
# What the published pipeline answers instead of a tool that its server does not have.
DUMMY_REPLY: Final = "Dummy Result"
UNAVAILABLE: Final = "UNAVAILABLE"
# The type of an error if the file does not state it.
UNKNOWN_ERROR: Final = "unknown"
PART_TYPES: Final[Mapping[str, ParameterType]] = {kind: kind for kind in get_args(ParameterType)}


class StepError(Record):
    """Why a call returned no result; `type` is upstream's name for the error if it has one."""

    type: str
    message: str = ""


class CallStep(Record):
    """A tool call; `arguments` is the raw text if it could not be read as an object.

    Arguments that are null have no key in a log, because Inspect writes records without nulls.
    `others` counts the further calls of the same reply if only the first one is a step, as in step
    mode; no metric reads it.
    """

    step: Literal["call"] = "call"
    name: str
    arguments: JsonValue = None
    error: StepError | None = None
    others: int = 0


class AnswerStep(Record):
    """A text for the user; `error` marks crash messages that upstream records as answers."""

    step: Literal["answer"] = "answer"
    content: str
    error: StepError | None = None


class ThoughtStep(Record):
    """A thought that upstream records as a separate step."""

    step: Literal["thought"] = "thought"
    content: str


class MalformedStep(Record):
    """A reply that is neither a call nor an answer: empty, or in violation of the protocol."""

    step: Literal["malformed"] = "malformed"
    content: str
    reason: str


class ReplyPart(Record):
    """A piece of a tool's result; for files `content` is a path."""

    type: ParameterType
    content: str


class ReplyStep(Record):
    """What a tool returned; no parts if the call failed."""

    step: Literal["reply"] = "reply"
    parts: tuple[ReplyPart, ...] = ()


PredictedStep = Annotated[
    CallStep | AnswerStep | ThoughtStep | MalformedStep | ReplyStep, Field(discriminator="step")
]
Trace = tuple[PredictedStep, ...]


def read_trace(steps: JsonValue) -> Trace:
    """A list of upstream's steps as a trace."""
    if not isinstance(steps, list):
        raise ValueError(f"A trace is a list of steps, not {_kind(steps)}.")
    return tuple(read_step(step) for step in steps)


def mark_dummies(trace: Trace) -> Trace:
    """Add an error to calls that got the pipeline's dummy reply: no tool was called."""
    message = f"the tool was missing; a stand-in answered {DUMMY_REPLY!r}"
    error = StepError(type=UNAVAILABLE, message=message)
    steps = []
    for step, after in zip_longest(trace, trace[1:]):
        parts = after.parts if isinstance(after, ReplyStep) else ()
        is_dummy = [part.content.strip() for part in parts] == [DUMMY_REPLY]
        if isinstance(step, CallStep) and step.error is None and is_dummy:
            step = step.model_copy(update={"error": error})
        steps.append(step)
    return tuple(steps)


def write_trace(trace: Iterable[PredictedStep]) -> list[JsonValue]:
    """A trace in the form in which upstream stores it."""
    return [write_step(step) for step in trace]


def read_step(step: JsonValue) -> PredictedStep:
    """One step by upstream's rule: a call if it has `tool_calls`, else by its role.

    Accepts everything that the published evaluator scores, and reads only what it uses: keys that
    no metric reads are dropped, and of several calls only the first counts. `describe_odd` reports
    such cases.
    """
    if not isinstance(step, dict):
        raise ValueError(f"A step is an object, not {_kind(step)}.")
    if "tool_calls" in step:
        return _read_call(step)
    if step.get("role") == "assistant":
        return _read_text(step)
    # The published evaluator ignores the content of replies, so nothing in it is refused.
    return ReplyStep(parts=tuple(map(_read_part, _list_parts(step))))


def describe_odd(steps: JsonValue) -> list[str]:
    """Descriptions of parts of the steps that were dropped, or not read as they are written."""
    return [
        f"step {index}: {problem}"
        for index, step in enumerate(steps if isinstance(steps, list) else ())
        if isinstance(step, dict)
        for problem in _describe_step(step)
    ]


def _describe_step(step: dict[str, JsonValue]) -> list[str]:
    problems = []
    calls = step.get("tool_calls")
    if isinstance(calls, list) and len(calls) > 1:
        problems.append(f"of {len(calls)} calls only the first is scored")
    if isinstance(calls, list) and calls and "arguments" not in _function(calls[0]):
        problems.append("the call has no arguments")
    if "error" in step and not (isinstance(step["error"], dict) and "type" in step["error"]):
        problems.append("the error has no type; its key alone marks the step as failed")
    if "tool_calls" in step:
        return problems
    if not isinstance(step.get("role"), str):
        problems.append("there is no role; it is read as a tool's reply")
    if step.get("role") == "assistant":
        if not isinstance(step.get("content"), str | None):
            problems.append("the content is not text; its JSON is read")
    elif any(
        str(part.get("type")) not in PART_TYPES
        if isinstance(part, dict)
        else not isinstance(part, str | None)
        for part in _list_parts(step)
    ):
        problems.append("a part of the reply has an unknown type; it is read as text")
    return problems


def write_step(step: PredictedStep) -> dict[str, JsonValue]:
    """One step as upstream stores it; a malformed reply becomes upstream's NoAction."""
    match step:
        case CallStep():
            return _write_call(step.name, step.arguments, step.error)
        case MalformedStep():
            error = StepError(type=NO_ACTION_ERROR, message=step.reason)
            return _write_call(NO_ACTION, {"text": ""}, error)
        case ThoughtStep():
            return {"role": "assistant", "content": step.content, "meta": {"type": "thought"}}
        case AnswerStep():
            answer: dict[str, JsonValue] = {"role": "assistant", "content": step.content}
            return answer | _write_error(step.error)
        case _:
            parts: list[JsonValue] = [part.model_dump() for part in step.parts]
            return {"role": "tool", "content": parts or None}


def _read_call(step: dict[str, JsonValue]) -> CallStep:
    calls = step["tool_calls"]
    if not isinstance(calls, list) or not calls:
        raise ValueError("`tool_calls` must be a list of at least one call.")
    function = _function(calls[0])
    name = function.get("name")
    if not isinstance(name, str):
        raise ValueError("A tool call needs a `function` with a `name`.")
    return CallStep(name=name, arguments=function.get("arguments"), error=_read_error(step))


def _function(call: JsonValue) -> dict[str, JsonValue]:
    function = call.get("function") if isinstance(call, dict) else None
    return function if isinstance(function, dict) else {}


def _read_text(step: dict[str, JsonValue]) -> AnswerStep | ThoughtStep:
    content = _text(step.get("content"))
    meta, error = step.get("meta"), _read_error(step)
    if isinstance(meta, dict) and meta.get("type") == "thought" and error is None:
        return ThoughtStep(content=content)
    return AnswerStep(content=content, error=error)


def _read_error(step: dict[str, JsonValue]) -> StepError | None:
    """The published evaluator only checks for the key, so null is an error too."""
    if "error" not in step:
        return None
    error = step["error"]
    if not isinstance(error, dict):
        return StepError(type=UNKNOWN_ERROR, message=_text(error))
    kind = error.get("type")
    return StepError(
        type=kind if isinstance(kind, str) else UNKNOWN_ERROR, message=_text(error.get("msg"))
    )


def _list_parts(step: dict[str, JsonValue]) -> list[JsonValue]:
    content = step.get("content")
    if content is None:
        return []
    return content if isinstance(content, list) else [content]


def _read_part(part: JsonValue) -> ReplyPart:
    if not isinstance(part, dict):
        return ReplyPart(type="text", content=_text(part))
    kind = PART_TYPES.get(str(part.get("type")), "text")
    return ReplyPart(type=kind, content=_text(part.get("content")))


def _text(value: JsonValue) -> str:
    """Text unchanged, "" for null, and the JSON of anything else."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_call(name: str, arguments: JsonValue, error: StepError | None) -> dict[str, JsonValue]:
    function: dict[str, JsonValue] = {"name": name, "arguments": arguments}
    step: dict[str, JsonValue] = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": function}],
    }
    return step | _write_error(error)


def _write_error(error: StepError | None) -> dict[str, JsonValue]:
    return {} if error is None else {"error": {"type": error.type, "msg": error.message}}


def _kind(value: JsonValue) -> str:
    return "null" if value is None else type(value).__name__
