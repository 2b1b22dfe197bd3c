"""ReAct replies, read in two ways: exactly as upstream reads them, or for what they mean.

`parse_upstream` follows upstream's parser, including its quirks, which
`tests/parity/upstream_vectors.json` proves. Where upstream fails with an uncaught exception, the
step is malformed and names that exception.

`parse_tolerant` returns the first complete call, or the answer. Unlike upstream, every action has
its own input, text after the arguments and any fence are ignored, and markers may be in any case or
in bold. If a reply goes on to invent the tool's response, only the call before it counts. A text
without any marker is an answer; an empty reply, or a thought that leads to nothing, is malformed.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gta_bench.agents.calling import (
    API_ERROR,
    ARGS_ERROR,
    clean_text,
    find_tool,
    make_recordable,
    read_call,
    reject_call,
    remove_thinking,
)
from gta_bench.agents.contract import DecidedStep
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import ToolSpec

THOUGHT = "Thought:"
ACTION = "Action:"
ACTION_INPUT = "Action Input:"
RESPONSE = "Response:"
FINAL_ANSWER = "Final Answer:"

NO_ACTION = "NoAction"
INVALID_ACTION = "InvalidAction"
FINISH_ACTION = "FinishAction"
FOLLOW_THE_FORMAT = "Please follow the format"
INVALID_NAME = "The action is invalid, please check the action name."
CRASH = "upstream's parser raises "

# The closing fence is on its own line; only an opening fence with `json` is recognized.
_FENCED = re.compile(r"\s*(?:```json\n)?(?P<content>.*)\n```\s*", re.DOTALL)
# The names of upstream's file classes in the messages of its exceptions.
_FILE_CLASSES = {"image": "ImageIO", "audio": "AudioIO", "video": "VideoIO", "file": "File"}
_VALUE_CLASSES: dict[str, type[Any]] = {"text": str, "int": int, "float": float, "bool": bool}

_MARKERS = r"thought|action[ \t_]*input|action|response|observation|final[ \t_]*answer"
# Markers start a line, possibly in bold, as a heading or as a list item.
_AT_LINE_START = re.compile(
    rf"^[ \t>#*_`-]*(?P<marker>{_MARKERS})[ \t*_`]*:[*_`]*", re.IGNORECASE | re.MULTILINE
)
# Some models write everything on one line; only the exact spelling counts there.
_ANYWHERE = re.compile(
    r"(?P<marker>Thought|Action Input|Action|Response|Final Answer)[*_`]*:[*_`]*"
)
_FENCE_END = re.compile(r"\s*```")
_NAME_PARTS = re.compile(r"[\w-]+")
# Models write these instead of a tool's name to finish.
_FINISHING = frozenset({"finalanswer", "finish", "finishaction"})


class _ArgumentsError(Exception):
    """Upstream's ARGS_ERROR with its message."""


def parse_upstream(
    text: str, tools: Sequence[ToolSpec], file_exists: Callable[[str], bool]
) -> DecidedStep:
    """Return the step that upstream would record for this reply; files have to exist."""
    text = clean_text(text)
    if FINAL_ANSWER in text:
        return AnswerStep(content=text.rpartition(FINAL_ANSWER)[2])
    names = re.findall(f"{ACTION}(.*?)\n", text)
    _, marker, rest = text.partition(ACTION_INPUT)
    if not names or not marker:
        return _reject_no_action("")
    name, raw = names[-1].strip(), rest.strip().strip('"')
    tool, method = find_tool(name, tools), "run"
    if tool is None and "." in name:
        owner, _, method = name.rpartition(".")
        tool = find_tool(owner, tools)
    if tool is not None and method == "run":
        return _call(tool, raw, file_exists, text)
    if tool is not None:
        return reject_call(tool.name, raw, API_ERROR, f"invalid API: {method}")
    if name == FINISH_ACTION:
        return AnswerStep(content=raw)
    if name == NO_ACTION:
        return _reject_no_action(raw)
    # Upstream sends the model its own input as the error message.
    return reject_call(INVALID_ACTION, {"text": raw}, API_ERROR, raw or INVALID_NAME)


def read_upstream_thought(text: str) -> str:
    """Return what upstream considers the thought of a reply."""
    before_action = text.partition(ACTION)[0]
    return before_action.rpartition(THOUGHT)[2].partition(FINAL_ANSWER)[0]


def _reject_no_action(raw: str) -> CallStep:
    return reject_call(NO_ACTION, {"text": raw}, API_ERROR, raw or FOLLOW_THE_FORMAT)


def _call(
    tool: ToolSpec, raw: str, file_exists: Callable[[str], bool], text: str
) -> CallStep | MalformedStep:
    try:
        arguments = _arguments(tool, raw)
    except _ArgumentsError as exc:
        return reject_call(tool.name, raw, ARGS_ERROR, str(exc))
    except (TypeError, ValueError, RecursionError) as exc:
        return MalformedStep(content=text, reason=f"{CRASH}{exc!r}")
    if not isinstance(arguments, dict):
        kind = type(arguments).__name__
        crash = AttributeError(f"'{kind}' object has no attribute 'get'")
        return MalformedStep(content=text, reason=f"{CRASH}{crash!r}")
    problem = _conversion_problem(tool, arguments, file_exists)
    if problem is None:
        return CallStep(name=tool.name, arguments=make_recordable(arguments))
    # Kept for parity: a failed call records only its argument `inputs`, if it has one.
    return reject_call(tool.name, arguments.get("inputs", arguments), API_ERROR, problem)


def _arguments(tool: ToolSpec, raw: str) -> object:
    """Return the decoded JSON if its keys fit; its type is not checked, as upstream."""
    fenced = _FENCED.fullmatch(raw)
    source = fenced["content"].strip() if fenced else raw
    try:
        decoded = json.loads(source)
    except json.JSONDecodeError as exc:
        raise _ArgumentsError(f"invalid json format: {source}") from exc
    keys = set(decoded)
    known = {parameter.name for parameter in tool.inputs}
    if keys - known:
        raise _ArgumentsError(f"unknown arguments: {_set_text(keys - known)}")
    required = {parameter.name for parameter in tool.inputs if not parameter.optional}
    if required - keys:
        raise _ArgumentsError(f"missing required arguments: {_set_text(required - keys)}")
    return decoded


def _set_text(items: set[object] | set[str | None]) -> str:
    """Return Python's text of a set, in an order that is the same in every run."""
    return "{" + ", ".join(sorted(repr(item) for item in items)) + "}"


def _conversion_problem(
    tool: ToolSpec, arguments: Mapping[str, object], file_exists: Callable[[str], bool]
) -> str | None:
    """Return the repr of the first exception that upstream's type conversion raises."""
    for name, value in arguments.items():
        parameter = tool.input(name)
        assert parameter is not None
        kind = _FILE_CLASSES.get(parameter.type)
        try:
            if kind is not None and not isinstance(value, str):
                text = f"The value type `{type(value)}` is not supported by `{kind}`"
                raise NotImplementedError(text)
            if isinstance(value, str) and kind is not None and not file_exists(value):
                raise FileNotFoundError(f"No such file: '{value}'")
            if kind is None and not isinstance(value, _VALUE_CLASSES[parameter.type]):
                _VALUE_CLASSES[parameter.type](value)
        except (TypeError, ValueError, ArithmeticError, OSError, RuntimeError) as exc:
            return repr(exc)
    return None


class _Section(NamedTuple):
    """A marker, and start and end of the text after it."""

    marker: str
    start: int
    end: int


class _Read(NamedTuple):
    """A step, and the position after it in its reply."""

    step: DecidedStep
    end: int


class _NotAnObject(Exception):
    """The text contains no JSON object."""


def parse_tolerant(text: str, tools: Sequence[ToolSpec]) -> DecidedStep:
    """Return the step that this reply means, for any text."""
    return _read(remove_thinking(clean_text(text)), tools).step


def cut_invented(reply: str, tools: Sequence[ToolSpec]) -> str:
    """Return a reply up to the end of its call, without what the model invented after it."""
    said = remove_thinking(clean_text(reply))
    step, end = _read(said, tools)
    if not isinstance(step, CallStep):
        return reply
    return reply[: len(reply) - len(said) + end].rstrip()


def _read(text: str, tools: Sequence[ToolSpec]) -> _Read:
    if not text.strip():
        return _Read(MalformedStep(content=text, reason="the reply is empty"), len(text))
    at_line_start = _sections(_AT_LINE_START, text)
    anywhere = _sections(_ANYWHERE, text)
    read = _first_step(text, at_line_start, tools) or _first_step(text, anywhere, tools)
    if read is not None:
        return read
    action = next((section for section in at_line_start if section.marker == "action"), None)
    if action is not None:  # without any input it counts as a call without arguments
        name = _tool_name(text[action.start : action.end], tools)
        return _Read(read_call(name, {}, tools), action.end)
    if at_line_start:
        reason = "the reply has neither a call nor an answer"
        return _Read(MalformedStep(content=text, reason=reason), len(text))
    return _Read(AnswerStep(content=text.strip()), len(text))


def _sections(markers: re.Pattern[str], text: str) -> list[_Section]:
    found = list(markers.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [
        _Section(re.sub(r"[ \t_]", "", match["marker"]).casefold(), match.end(), end)
        for match, end in zip(found, ends, strict=False)
    ]


def _first_step(text: str, sections: Sequence[_Section], tools: Sequence[ToolSpec]) -> _Read | None:
    """Return the first complete step; the model has invented everything after it."""
    for index, section in enumerate(sections):
        if section.marker == "finalanswer":
            return _Read(_answer(text, text[section.start : section.end]), section.end)
        if section.marker == "action":
            following = sections[index + 1] if index + 1 < len(sections) else None
            own_input = following if following and following.marker == "actioninput" else None
            read = _tolerant_call(text, section, own_input, tools)
            if read is not None:
                return read
    return None


def _answer(text: str, content: str) -> AnswerStep | MalformedStep:
    if not content.strip():
        return MalformedStep(content=text, reason="the final answer is empty")
    return AnswerStep(content=content.strip())


def _tolerant_call(
    text: str, action: _Section, own_input: _Section | None, tools: Sequence[ToolSpec]
) -> _Read | None:
    """Return the call of one action; None if its input is missing."""
    section = own_input or action
    name = _tool_name(text[action.start : action.end], tools)
    raw = text[section.start : section.end].strip()
    if own_input and _plain(name) in _FINISHING and find_tool(name, tools) is None:
        return _Read(_answer(text, raw), section.end)
    try:
        arguments, end = _read_object(text, section.start, section.end)
    except _NotAnObject as exc:
        if own_input is None:
            return None
        if not raw:
            step = read_call(name, {}, tools)
        elif find_tool(name, tools) is None:
            step = read_call(name, raw, tools)
        else:
            step = reject_call(name, raw, ARGS_ERROR, f"{name}: {exc}.")
        return _Read(step, section.end)
    fence = _FENCE_END.match(text, end)
    return _Read(read_call(name, arguments, tools), fence.end() if fence else end)


def _tool_name(body: str, tools: Sequence[ToolSpec]) -> str:
    """Return the tool that the action names, ignoring case, blanks and decoration."""
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


def _read_object(text: str, start: int, end: int) -> tuple[dict[str, object], int]:
    """Return the first object that opens between start and end, and the position after it.

    It is JSON or a Python literal. It may extend past `end`, because a text inside the arguments
    may look like a marker.
    """
    opening = text.find("{", start, end)
    if opening < 0:
        raise _NotAnObject('the input must be a JSON object such as {"parameter": "value"}')
    value: object
    try:
        # strict=False: models write the line breaks of code unescaped.
        value, closing = json.JSONDecoder(strict=False).raw_decode(text, opening)
    except json.JSONDecodeError as exc:
        closing, _ = find_object_end(text, opening)
        try:
            value = read_literal(text[opening:closing])
        except UNREADABLE as error:
            raise _NotAnObject(f"the input cannot be read as JSON ({exc.msg})") from error
    except (ValueError, RecursionError) as exc:
        raise _NotAnObject(f"the input cannot be read as JSON ({exc})") from exc
    if not isinstance(value, dict):
        raise _NotAnObject("the input must be a JSON object, with a value for each name")
    return value, closing


# What `read_literal` and the parsers of JSON and Python raise for text that they cannot read.
UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


def read_literal(text: str) -> object:
    """Evaluate a Python literal without warnings about escapes that Python does not know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


def find_object_end(text: str, start: int) -> tuple[int, str]:
    """Return the position after the object that opens at `start`, and its missing brackets."""
    closing, quote, position = [], "", start
    while position < len(text):
        char = text[position]
        if quote:
            position += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "{[":
            closing.append("}" if char == "{" else "]")
        elif closing and char == closing[-1]:
            closing.pop()
        position += 1
        if not closing:
            break
    return position, "".join(reversed(closing))
