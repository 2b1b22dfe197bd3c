"""A ReAct reply read exactly as upstream reads it, its quirks included.

The rules stand in upstream's parser and are proven on `tests/parity/upstream_vectors.json`.
Where upstream dies of an uncaught exception, the step is malformed and names that exception.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gta_bench.agents.arguments import (
    API_ERROR,
    ARGS_ERROR,
    failed_call,
    find_tool,
    recordable,
)
from gta_bench.agents.contract import DecidedStep
from gta_bench.agents.replies import clean_text
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

# The closing fence stands on its own line; an opening fence is only known with `json`.
_FENCED = re.compile(r"\s*(?:```json\n)?(?P<content>.*)\n```\s*", re.DOTALL)
# What upstream's classes for files are called in the messages of its exceptions.
_FILE_CLASSES = {"image": "ImageIO", "audio": "AudioIO", "video": "VideoIO", "file": "File"}
_VALUE_CLASSES: dict[str, type[Any]] = {"text": str, "int": int, "float": float, "bool": bool}


class _ArgumentsError(Exception):
    """Upstream's ARGS_ERROR with its message."""


def parse_upstream(
    text: str, tools: Sequence[ToolSpec], file_exists: Callable[[str], bool]
) -> DecidedStep:
    """The step that upstream would record for this reply; files have to exist."""
    text = clean_text(text)
    if FINAL_ANSWER in text:
        return AnswerStep(content=text.rpartition(FINAL_ANSWER)[2])
    names = re.findall(f"{ACTION}(.*?)\n", text)
    _, marker, rest = text.partition(ACTION_INPUT)
    if not names or not marker:
        return _no_action("")
    return _dispatch(names[-1].strip(), rest.strip().strip('"'), tools, file_exists, text)


def upstream_thought(text: str) -> str:
    """What upstream takes for the thought of a reply."""
    before_action = text.partition(ACTION)[0]
    return before_action.rpartition(THOUGHT)[2].partition(FINAL_ANSWER)[0]


def _dispatch(
    name: str,
    raw: str,
    tools: Sequence[ToolSpec],
    file_exists: Callable[[str], bool],
    text: str,
) -> DecidedStep:
    tool, method = find_tool(name, tools), "run"
    if tool is None and "." in name:
        owner, _, method = name.rpartition(".")
        tool = find_tool(owner, tools)
    if tool is not None and method == "run":
        return _call(tool, raw, file_exists, text)
    if tool is not None:
        return failed_call(tool.name, raw, API_ERROR, f"invalid API: {method}")
    if name == FINISH_ACTION:
        return AnswerStep(content=raw)
    if name == NO_ACTION:
        return _no_action(raw)
    # Upstream tells the model its own input as the error message.
    return failed_call(INVALID_ACTION, {"text": raw}, API_ERROR, raw or INVALID_NAME)


def _no_action(raw: str) -> CallStep:
    return failed_call(NO_ACTION, {"text": raw}, API_ERROR, raw or FOLLOW_THE_FORMAT)


def _call(
    tool: ToolSpec, raw: str, file_exists: Callable[[str], bool], text: str
) -> CallStep | MalformedStep:
    try:
        arguments = _arguments(tool, raw)
    except _ArgumentsError as exc:
        return failed_call(tool.name, raw, ARGS_ERROR, str(exc))
    except (TypeError, ValueError, RecursionError) as exc:
        return MalformedStep(content=text, reason=f"{CRASH}{exc!r}")
    if not isinstance(arguments, dict):
        kind = type(arguments).__name__
        crash = AttributeError(f"'{kind}' object has no attribute 'get'")
        return MalformedStep(content=text, reason=f"{CRASH}{crash!r}")
    problem = _conversion_problem(tool, arguments, file_exists)
    if problem is None:
        return CallStep(name=tool.name, arguments=recordable(arguments))
    # Kept for parity: a failed call records its argument `inputs`, if it has one, alone.
    return failed_call(tool.name, arguments.get("inputs", arguments), API_ERROR, problem)


def _arguments(tool: ToolSpec, raw: str) -> object:
    """Decoded JSON whose keys fit; its type is checked by nobody, as upstream."""
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
    """Python's text of a set, in an order that does not change from run to run."""
    return "{" + ", ".join(sorted(repr(item) for item in items)) + "}"


def _conversion_problem(
    tool: ToolSpec, arguments: Mapping[str, object], file_exists: Callable[[str], bool]
) -> str | None:
    """The exception that upstream's type conversion meets first, as its repr."""
    for name, value in arguments.items():
        parameter = tool.input(name)
        assert parameter is not None
        try:
            if parameter.type in _FILE_CLASSES:
                _check_file(_FILE_CLASSES[parameter.type], value, file_exists)
            elif not isinstance(value, _VALUE_CLASSES[parameter.type]):
                _VALUE_CLASSES[parameter.type](value)
        except (TypeError, ValueError, ArithmeticError, OSError, RuntimeError) as exc:
            return repr(exc)
    return None


def _check_file(kind: str, value: object, file_exists: Callable[[str], bool]) -> None:
    if not isinstance(value, str):
        raise NotImplementedError(f"The value type `{type(value)}` is not supported by `{kind}`")
    if not file_exists(value):
        raise FileNotFoundError(f"No such file: '{value}'")
