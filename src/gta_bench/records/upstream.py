"""Upstream's JSON form of a step, read into our records and written back."""

import json
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Final, get_args

from pydantic import JsonValue

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
from gta_bench.records.tools import ParameterType

# How upstream records a reply in which it found no action.
NO_ACTION: Final = "NoAction"
NO_ACTION_ERROR: Final = "API_ERROR"
# What the published pipeline answers in place of a tool that its server does not have.
DUMMY_REPLY: Final = "Dummy Result"
UNAVAILABLE: Final = "UNAVAILABLE"
# What an error is called whose file does not say.
UNKNOWN_ERROR: Final = "unknown"
PART_TYPES: Final[Mapping[str, ParameterType]] = {kind: kind for kind in get_args(ParameterType)}


def read_trace(steps: JsonValue) -> Trace:
    """A list of upstream's steps as a trace."""
    if not isinstance(steps, list):
        raise ValueError(f"A trace is a list of steps, not {_kind(steps)}.")
    return tuple(read_step(step) for step in steps)


def mark_dummies(trace: Trace) -> Trace:
    """Calls that a stand-in answered get an error: the tool was never called."""
    told = StepError(
        type=UNAVAILABLE, message=f"the tool was missing; a stand-in answered {DUMMY_REPLY!r}"
    )
    return tuple(
        step.model_copy(update={"error": told})
        if isinstance(step, CallStep) and step.error is None and _is_dummy(after)
        else step
        for step, after in zip_longest(trace, trace[1:])
        if step is not None
    )


def _is_dummy(step: PredictedStep | None) -> bool:
    return isinstance(step, ReplyStep) and [part.content.strip() for part in step.parts] == [
        DUMMY_REPLY
    ]


def write_trace(trace: Iterable[PredictedStep]) -> list[JsonValue]:
    """A trace as upstream stores it."""
    return [write_step(step) for step in trace]


def read_step(step: JsonValue) -> PredictedStep:
    """One step by upstream's rule: a call if it has `tool_calls`, else by its role.

    Whatever the published evaluator scores is read, and only what it looks at: keys that no metric
    reads are dropped, of several calls the first counts, and `describe_odd` says what was odd.
    """
    if not isinstance(step, dict):
        raise ValueError(f"A step is an object, not {_kind(step)}.")
    if "tool_calls" in step:
        return _read_call(step)
    if step.get("role") == "assistant":
        return _read_text(step)
    return ReplyStep(parts=tuple(_read_parts(step.get("content"))))


def describe_odd(steps: JsonValue) -> list[str]:
    """What was dropped of steps, or read in another way than it stands there."""
    found = []
    for place, step in enumerate(steps if isinstance(steps, list) else ()):
        words = _describe_step(step) if isinstance(step, dict) else []
        found += [f"step {place}: {one}" for one in words]
    return found


def _describe_step(step: dict[str, JsonValue]) -> list[str]:
    words = []
    calls = step.get("tool_calls")
    if isinstance(calls, list) and len(calls) > 1:
        words.append(f"of {len(calls)} calls the first is scored, the others are dropped")
    if isinstance(calls, list) and calls and "arguments" not in _function(calls[0]):
        words.append("the call has no arguments")
    if "error" in step and not (isinstance(step["error"], dict) and "type" in step["error"]):
        words.append("the error has no type; its key alone marks the step as failed")
    if "tool_calls" not in step and not isinstance(step.get("role"), str):
        words.append("there is no role; it is read as a tool's reply")
    if "tool_calls" not in step and step.get("role") == "assistant":
        content = step.get("content")
        if content is not None and not isinstance(content, str):
            words.append("the content is no text; its JSON is read")
    if _has_unknown_part(step):
        words.append("a part of the reply has an unknown type; it is read as text")
    return words


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
            parts: list[JsonValue] = [
                {"type": part.type, "content": part.content} for part in step.parts
            ]
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
    """The published evaluator looks for the key alone: also null is an error."""
    if "error" not in step:
        return None
    error = step["error"]
    if not isinstance(error, dict):
        return StepError(type=UNKNOWN_ERROR, message=_text(error))
    kind = error.get("type")
    return StepError(
        type=kind if isinstance(kind, str) else UNKNOWN_ERROR, message=_text(error.get("msg"))
    )


def _read_parts(content: JsonValue) -> Iterable[ReplyPart]:
    """The published evaluator never looks at a reply, so that nothing in it is refused."""
    if content is None:
        return ()
    parts = content if isinstance(content, list) else [content]
    return tuple(_read_part(part) for part in parts)


def _read_part(part: JsonValue) -> ReplyPart:
    if not isinstance(part, dict):
        return ReplyPart(type="text", content=_text(part))
    kind = PART_TYPES.get(str(part.get("type")), "text")
    return ReplyPart(type=kind, content=_text(part.get("content")))


def _has_unknown_part(step: dict[str, JsonValue]) -> bool:
    if "tool_calls" in step or step.get("role") == "assistant":
        return False
    content = step.get("content")
    parts = content if isinstance(content, list) else [content]
    return any(
        not isinstance(part, dict) or str(part.get("type")) not in PART_TYPES
        for part in parts
        if part is not None and not isinstance(part, str)
    )


def _text(value: JsonValue) -> str:
    """A text as it is, nothing for null, and the JSON of anything else."""
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
