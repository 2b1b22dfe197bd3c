"""What a trace shows of one piece of work: the one record that every reader returns.

A value that the trace does not have is None, and is never guessed here. `notes` says what was lost.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from pydantic import JsonValue

from gta_bench.records.base import Record
from gta_bench.records.steps import AnswerStep, CallStep, ReplyPart, ReplyStep, Trace

TraceFormat = Literal["Inspect", "ATIF", "OpenInference", "OpenTelemetry GenAI"]
# Of a text that a trace has; more is data, not a request or an answer.
MOST_CHARACTERS: Final = 1_000_000
DATA_ADDRESS: Final = "data:"


class ObservedTool(Record):
    """A tool that was offered or called; `parameters` is its JSON Schema, None if not recorded."""

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] | None = None


class ObservedCall(Record):
    """A tool call.

    `arguments` and `reply` are None if they were not recorded, or if a part of them is missing.
    `error` is what the tool said when it failed.
    """

    tool: str
    arguments: Mapping[str, JsonValue] | None = None
    reply: tuple[ReplyPart, ...] | None = None
    error: str | None = None


class ObservedFile(Record):
    """A file that the system was given; `data` is None if the trace only refers to it."""

    name: str
    data: bytes | None = None
    sha256: str | None = None


class ObservedTrace(Record):
    """One trace. `is_cut` says that the request is not complete, `is_ours` that gta-bench ran it.

    `turns` counts the user's messages. `delivered` has names of files that the system produced,
    None if the trace does not say.
    """

    id: str
    format: TraceFormat
    request: str | None = None
    is_cut: bool = False
    turns: int = 0
    system: str | None = None
    answer: str | None = None
    target: str | None = None
    tools: tuple[ObservedTool, ...] = ()
    calls: tuple[ObservedCall, ...] = ()
    files: tuple[ObservedFile, ...] = ()
    delivered: tuple[str, ...] | None = None
    is_ours: bool = False
    notes: tuple[str, ...] = ()


def read_step_calls(trace: Trace) -> tuple[ObservedCall, ...]:
    """Return the calls of a trace of ours, each with the replies that follow it."""
    calls: list[ObservedCall] = []
    for step in trace:
        if isinstance(step, CallStep):
            given = step.arguments if isinstance(step.arguments, dict) else None
            error = None if step.error is None else step.error.message or step.error.type
            calls.append(ObservedCall(tool=step.name, arguments=given, error=error))
        elif isinstance(step, ReplyStep) and step.parts and calls:
            last = calls[-1]
            if last.error is None:
                parts = (*(last.reply or ()), *step.parts)
                calls[-1] = last.model_copy(update={"reply": parts})
    return tuple(calls)


def find_answer(trace: Trace) -> str | None:
    """Return the last answer of a trace of ours."""
    answers = [step.content for step in trace if isinstance(step, AnswerStep)]
    return answers[-1] if answers else None


def make_text(text: str) -> tuple[ReplyPart, ...]:
    """Return a text as the reply of a tool."""
    return (ReplyPart(type="text", content=text),)


def parse_object(text: JsonValue) -> dict[str, JsonValue] | None:
    """Return a JSON object, also one that is written as text; None if it is none."""
    if isinstance(text, str):
        try:
            text = json.loads(text, parse_constant=str)
        except (ValueError, RecursionError):
            return None
    return text if isinstance(text, dict) else None


def read_definition(value: JsonValue) -> ObservedTool | None:
    """Read a tool's definition in any of the forms that providers have; None if it is none."""
    found = parse_object(value)
    if found is None:
        return None
    inner = found.get("function")
    about = inner if isinstance(inner, dict) else found
    name, said = about.get("name"), about.get("description")
    if not isinstance(name, str) or not name:
        return None
    schemas = (about.get(key) for key in ("parameters", "input_schema", "inputSchema"))
    schema = next((one for one in map(parse_object, schemas) if one is not None), None)
    return ObservedTool(
        name=name, description=said if isinstance(said, str) else "", parameters=schema
    )


def join_tools(
    defined: Iterable[ObservedTool], calls: Iterable[ObservedCall]
) -> tuple[tuple[ObservedTool, ...], tuple[str, ...]]:
    """Return each tool once, also those that were only called, and notes about contradictions."""
    found: dict[str, ObservedTool] = {}
    notes: dict[str, None] = {}
    for tool in defined:
        before = found.get(tool.name)
        if before is not None and before.parameters is not None:
            if tool.parameters is None:
                continue
            if before.parameters != tool.parameters:
                notes[f"{tool.name} has several schemas in the trace; the last one counts."] = None
        found[tool.name] = tool
    for call in calls:
        found.setdefault(call.tool, ObservedTool(name=call.tool))
    return tuple(found.values()), tuple(notes)


def read_data_address(address: str) -> bytes | None:
    """Return the bytes in a `data:` address; None for any other address."""
    head, comma, encoded = address.partition(",")
    if not address.startswith(DATA_ADDRESS) or not comma or not head.endswith(";base64"):
        return None
    return decode_base64(encoded)


def decode_base64(encoded: str) -> bytes | None:
    """Return the bytes, None if the text is not base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
