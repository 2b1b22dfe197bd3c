"""A call checked against the tools on offer, its values brought to the declared types."""

import json
import math
import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from gta_bench.agents.replies import clean_text
from gta_bench.records.steps import CallStep, StepError
from gta_bench.records.tools import FILE_TYPES, ParameterType, ToolSpec

ARGS_ERROR = "ARGS_ERROR"
API_ERROR = "API_ERROR"
# Far above any sensible call, far below where records and logs refuse to nest further.
MAX_DEPTH = 60
TOO_DEEP = "(nested too deep)"

_INTEGER = re.compile(r"[+-]?[0-9]{1,300}(\.0*)?")


def checked_call(name: str, arguments: object, tools: Sequence[ToolSpec]) -> CallStep:
    """The call with typed arguments, or with an error that says all that is wrong with it."""
    tool = find_tool(name, tools)
    given = recordable(arguments)
    if tool is None:
        known = ", ".join(tool.name for tool in distinct_tools(tools)) or "none"
        return failed_call(name, given, API_ERROR, f"Unknown tool {name!r}. Known tools: {known}.")
    if not isinstance(given, dict):
        return failed_call(name, given, ARGS_ERROR, f"{name}: the arguments are no JSON object.")
    # Null for an optional parameter is how native calls often leave it out.
    present = {key: value for key, value in given.items() if value is not None}
    problems = _name_problems(tool, present)
    typed: dict[str, JsonValue] = {}
    for key, value in present.items():
        parameter = tool.input(key)
        try:
            typed[key] = value if parameter is None else _convert(parameter.type, value)
        except ValueError as exc:
            problems.append(f"argument {key!r} must be {exc}, got {_short(value)}")
    if problems:
        return failed_call(name, given, ARGS_ERROR, f"{name}: {'; '.join(problems)}.")
    return CallStep(name=name, arguments=typed)


def failed_call(name: str, arguments: object, error: str, message: str) -> CallStep:
    """A call that cannot be carried out, and why."""
    return CallStep(
        name=clean_text(name),
        arguments=recordable(arguments),
        error=StepError(type=error, message=clean_text(message)),
    )


def find_tool(name: str, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """The tool of that name; the first one where it is offered twice."""
    return next((tool for tool in tools if tool.name == name), None)


def distinct_tools(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Every tool once, as find_tool finds it; task 47 lists one twice, which providers refuse."""
    offered: dict[str, ToolSpec] = {}
    for tool in tools:
        offered.setdefault(tool.name, tool)
    return list(offered.values())


def recordable(value: object, depth: int = 0) -> JsonValue:
    """The value as JSON that can be written and read back: models also say NaN and `\\ud800`."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, str):
        return clean_text(value)
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return {clean_text(str(key)): recordable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [recordable(item, depth + 1) for item in value]
    return clean_text(str(value))


def _name_problems(tool: ToolSpec, present: Mapping[str, JsonValue]) -> list[str]:
    names = [parameter.name for parameter in tool.inputs if parameter.name is not None]
    problems = [
        f"unknown argument {key!r}, the parameters are {', '.join(names) or 'none'}"
        for key in present
        if key not in names
    ]
    required = [parameter.name for parameter in tool.inputs if not parameter.optional]
    missing = [name for name in required if name is not None and name not in present]
    return problems + [f"missing argument {name!r}" for name in missing]


def _convert(type: ParameterType, value: JsonValue) -> JsonValue:
    """The value in the declared type; the ValueError says what it should have been."""
    if type in FILE_TYPES:
        return _path(value)
    if type == "int":
        return _integer(value)
    if type == "float":
        return _number(value)
    if type == "bool":
        return _truth(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _path(value: JsonValue) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError("the path of a file")


def _integer(value: JsonValue) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("an integer")


def _number(value: JsonValue) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        number = float(value) if isinstance(value, str) else math.nan
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    raise ValueError("a number")


def _truth(value: JsonValue) -> bool:
    word = value.strip().casefold() if isinstance(value, str) else value
    if word in ("true", "false"):
        return word == "true"
    if word in (0, 1):
        return bool(word)
    raise ValueError("true or false")


def _short(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
