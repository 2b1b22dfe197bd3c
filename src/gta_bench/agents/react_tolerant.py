"""A ReAct reply read for what it means: the first complete call, or the answer.

Against upstream's reading: every action has its own input, text after the arguments and any
fence are ignored, markers may be written in any case or in bold, and of a reply that goes on
to invent the tool's response only the call before it counts. A text without any marker is an
answer; an empty reply, or a thought that leads to nothing, is malformed.
"""

import ast
import json
import re
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from gta_bench.agents.arguments import ARGS_ERROR, checked_call, failed_call, find_tool
from gta_bench.agents.contract import DecidedStep
from gta_bench.agents.replies import clean_text, without_thinking
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import ToolSpec

_MARKERS = r"thought|action[ \t_]*input|action|response|observation|final[ \t_]*answer"
# Markers open a line, perhaps in bold, as a heading or an item of a list.
_AT_LINE_START = re.compile(
    rf"^[ \t>#*_`-]*(?P<marker>{_MARKERS})[ \t*_`]*:[*_`]*", re.IGNORECASE | re.MULTILINE
)
# Some models write everything on one line; only the exact spelling counts there.
_ANYWHERE = re.compile(
    r"(?P<marker>Thought|Action Input|Action|Response|Final Answer)[*_`]*:[*_`]*"
)
_NAME_PARTS = re.compile(r"[\w-]+")
# Ways to finish that models write in the place of a tool's name.
_FINISHING = frozenset({"finalanswer", "finish", "finishaction"})


class _Section(NamedTuple):
    """A marker and the place of the text up to the next one."""

    marker: str
    start: int
    end: int


class _NotAnObject(Exception):
    """The text holds no JSON object."""


def parse_tolerant(text: str, tools: Sequence[ToolSpec]) -> DecidedStep:
    """The step that this reply means; total on any text."""
    text = without_thinking(clean_text(text))
    if not text.strip():
        return MalformedStep(content=text, reason="the reply is empty")
    at_line_start = _sections(_AT_LINE_START, text)
    anywhere = _sections(_ANYWHERE, text)
    step = _first_step(text, at_line_start, tools) or _first_step(text, anywhere, tools)
    if step is not None:
        return step
    unfinished = _unfinished_call(text, at_line_start, tools)
    if unfinished is not None:
        return unfinished
    if at_line_start:
        return MalformedStep(content=text, reason="the reply has neither a call nor an answer")
    return AnswerStep(content=text.strip())


def _sections(markers: re.Pattern[str], text: str) -> list[_Section]:
    found = list(markers.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [
        _Section(re.sub(r"[ \t_]", "", match["marker"]).casefold(), match.end(), end)
        for match, end in zip(found, ends, strict=False)
    ]


def _first_step(
    text: str, sections: Sequence[_Section], tools: Sequence[ToolSpec]
) -> DecidedStep | None:
    """The first section that makes a whole step; what the model says after it is invented."""
    for index, section in enumerate(sections):
        if section.marker == "finalanswer":
            return _answer(text, text[section.start : section.end])
        if section.marker == "action":
            following = sections[index + 1] if index + 1 < len(sections) else None
            own_input = following if following and following.marker == "actioninput" else None
            step = _call(text, section, own_input, tools)
            if step is not None:
                return step
    return None


def _answer(text: str, content: str) -> AnswerStep | MalformedStep:
    if not content.strip():
        return MalformedStep(content=text, reason="the final answer is empty")
    return AnswerStep(content=content.strip())


def _call(
    text: str, action: _Section, own_input: _Section | None, tools: Sequence[ToolSpec]
) -> DecidedStep | None:
    """The call of one action; None where its input is missing."""
    place = own_input or action
    name = _tool_name(text[action.start : action.end], tools)
    raw = text[place.start : place.end].strip()
    if own_input and _plain(name) in _FINISHING and find_tool(name, tools) is None:
        return _answer(text, raw)
    try:
        arguments = read_object(text, place.start, place.end)
    except _NotAnObject as exc:
        if own_input is None:
            return None
        if not raw:
            return checked_call(name, {}, tools)
        if find_tool(name, tools) is None:
            return checked_call(name, raw, tools)
        return failed_call(name, raw, ARGS_ERROR, f"{name}: {exc}.")
    return checked_call(name, arguments, tools)


def _unfinished_call(
    text: str, sections: Sequence[_Section], tools: Sequence[ToolSpec]
) -> CallStep | None:
    """An action that has no input at all counts as a call without arguments."""
    action = next((section for section in sections if section.marker == "action"), None)
    if action is None:
        return None
    return checked_call(_tool_name(text[action.start : action.end], tools), {}, tools)


def _tool_name(body: str, tools: Sequence[ToolSpec]) -> str:
    """The tool that the action names, forgiving about case, blanks and decoration."""
    line = next((line for line in body.splitlines() if line.strip(" \t*_`\"'[]()")), "")
    written = line.split("{")[0].strip(" \t*_`\"'[]().,:;")
    parts = _NAME_PARTS.findall(written)
    for candidate in (written, *parts):
        for tool in tools:
            if _plain(candidate) == _plain(tool.name):
                return tool.name
    return written


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())


def read_object(text: str, start: int, end: int) -> dict[str, object]:
    """The first object that opens between start and end, as JSON or as a Python literal.

    It may run past `end`: a text inside the arguments may look like a marker.
    """
    opening = text.find("{", start, end)
    if opening < 0:
        raise _NotAnObject('the input must be a JSON object such as {"parameter": "value"}')
    try:
        # strict=False: models write the line breaks of code as they are.
        value, _ = json.JSONDecoder(strict=False).raw_decode(text, opening)
    except json.JSONDecodeError as exc:
        value = _python_literal(text, opening, problem=exc.msg)
    except (ValueError, RecursionError) as exc:
        raise _NotAnObject(f"the input cannot be read as JSON ({exc})") from exc
    if not isinstance(value, dict):
        raise _NotAnObject("the input must be a JSON object, with a value for each name")
    return value


def _python_literal(text: str, opening: int, *, problem: str) -> object:
    closing = _closing_brace(text, opening)
    try:
        with warnings.catch_warnings():
            # Unknown escapes such as `\d` in a model's text are not our warning to give.
            warnings.simplefilter("ignore")
            return ast.literal_eval(text[opening:closing])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as exc:
        raise _NotAnObject(f"the input cannot be read as JSON ({problem})") from exc


def _closing_brace(text: str, opening: int) -> int:
    """The place behind the brace that closes the object; the end of the text if none does."""
    depth, quote, escaped = 0, "", False
    for place in range(opening, len(text)):
        char = text[place]
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        else:
            depth += (char == "{") - (char == "}")
            if depth == 0:
                return place + 1
    return len(text)
