"""Upstream's JSON form of a step, read into our records and written back."""

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

    Keys that no metric reads (`thought`, `content` beside a call, other `meta`) are dropped.
    """
    if not isinstance(step, dict):
        raise ValueError(f"A step is an object, not {_kind(step)}.")
    if "tool_calls" in step:
        return _read_call(step)
    role = step.get("role")
    if not isinstance(role, str):
        raise ValueError(f"A step without `tool_calls` needs a `role`; its keys are {_keys(step)}.")
    if role == "assistant":
        return _read_text(step)
    return ReplyStep(parts=tuple(_read_parts(step.get("content"))))


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
    if not isinstance(calls, list) or len(calls) != 1:
        raise ValueError("`tool_calls` must be a list of exactly one call.")
    call = calls[0]
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str):
        raise ValueError("A tool call needs a `function` with a `name`.")
    if "arguments" not in function:
        raise ValueError(f"The call of {name!r} has no `arguments`.")
    return CallStep(name=name, arguments=function["arguments"], error=_read_error(step))


def _read_text(step: dict[str, JsonValue]) -> AnswerStep | ThoughtStep:
    content = step.get("content")
    if content is not None and not isinstance(content, str):
        raise ValueError(f"The `content` of an answer is a text, not {_kind(content)}.")
    meta, error = step.get("meta"), _read_error(step)
    if isinstance(meta, dict) and meta.get("type") == "thought" and error is None:
        return ThoughtStep(content=content or "")
    return AnswerStep(content=content or "", error=error)


def _read_error(step: dict[str, JsonValue]) -> StepError | None:
    if "error" not in step:
        return None
    error = step["error"]
    if not isinstance(error, dict) or not isinstance(error.get("type"), str):
        raise ValueError("An `error` is an object with a `type` and a `msg`.")
    message = error.get("msg")
    return StepError(type=str(error["type"]), message="" if message is None else str(message))


def _read_parts(content: JsonValue) -> Iterable[ReplyPart]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (ReplyPart(type="text", content=content),)
    parts = content if isinstance(content, list) else [content]
    return tuple(_read_part(part) for part in parts)


def _read_part(part: JsonValue) -> ReplyPart:
    if not isinstance(part, dict):
        raise ValueError(f"A part of a tool's reply is an object, not {_kind(part)}.")
    kind = PART_TYPES.get(str(part.get("type")))
    if kind is None:
        known = ", ".join(PART_TYPES)
        raise ValueError(f"Unknown reply type {part.get('type')!r}. Known types: {known}.")
    content = part.get("content")
    if content is None or isinstance(content, dict | list):
        raise ValueError(f"The `content` of a reply part is a text, not {_kind(content)}.")
    return ReplyPart(type=kind, content=str(content))


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


def _keys(step: dict[str, JsonValue]) -> str:
    return ", ".join(sorted(step)) or "none"
