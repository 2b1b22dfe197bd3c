"""Tool calls that a model wrote as text, because its server did not read them as calls."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from gta_bench.records.tools import ToolSpec

# Marks that chat templates put around calls; a server that parses calls leaves none of them.
_MARKS: Final = re.compile(
    r"<tool_call>|<\|tool_call|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|<function_calls?>"
    r"|<invoke name=|<\uff5ctool\u2581call|<\|channel\|>commentary to=|```tool_code"
)
_NAME_KEYS: Final = ("name", "function", "tool", "tool_name", "action")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "action_input")
# Far above what any reply of calls has; keeps a page of braces cheap.
_MOST_OBJECTS: Final = 40


def holds_call(text: str, tools: Sequence[ToolSpec]) -> bool:
    """Whether the text has a call in the form that some model was trained to write."""
    if _MARKS.search(text):
        return True
    names = {tool.name.casefold() for tool in tools}
    return any(_is_call(value, names) for value in _objects(text)) or _is_function(text, names)


def _objects(text: str) -> Iterator[JsonValue]:
    """The JSON objects in the text, from left to right."""
    decoder, place = json.JSONDecoder(), 0
    for _ in range(_MOST_OBJECTS):
        place = text.find("{", place)
        if place < 0:
            return
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
        else:
            yield value


def _is_call(value: JsonValue, names: set[str]) -> bool:
    if isinstance(value, list):
        return any(_is_call(one, names) for one in value)
    if not isinstance(value, dict):
        return False
    nested = value.get("function", value.get("tool_calls"))
    if isinstance(nested, dict | list):
        return _is_call(nested, names)
    name = next((value[key] for key in _NAME_KEYS if key in value), None)
    has_arguments = any(key in value for key in _ARGUMENT_KEYS)
    return isinstance(name, str) and name.casefold() in names and has_arguments


def _is_function(text: str, names: set[str]) -> bool:
    """Whether the whole text is written as a call in Python: `[OCR(image="a.png")]`."""
    found = re.fullmatch(r"\[?\s*(\w+)\(\s*(\w+\s*=.*)?\)\s*\]?", text.strip(), re.DOTALL)
    return found is not None and found[1].casefold() in names
