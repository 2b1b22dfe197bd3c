"""Tool calls that a model wrote as text, because its server did not read them as calls.

A reply is such a call where it ends with one; words after it make it an answer that mentions a
call. What is found here is counted and told to the model, and never made.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from gta_bench.records.tools import ToolSpec

Names = Mapping[str, frozenset[str]]

_NAME_KEYS: Final = (
    "name",
    "function",
    "function_name",
    "tool",
    "tool_name",
    "action",
    "recipient_name",
)
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "action_input")
_HOLDER_KEYS: Final = ("function", "function_call", "tool_call", "tool_calls", "tool_uses")
# Who says what a call gave is not making it.
_RESULT_KEYS: Final = frozenset({"result", "output", "observation", "answer"})
# Marks that chat templates put before calls; a server that parses calls leaves none of them.
# `{names}` are the tools on offer.
_MARKS: Final = (
    r"<\|?(?:\w+:)?(?:start_)?(?:tool|function)_?(?:call|use)s?(?:_\w+)?\|?>",
    r"\[TOOL_CALLS\]|<\|(?:python_tag|action_start|plugin|START_ACTION|tools_prefix|recipient)\|>",
    r"<function=|<[\w:\uff5c]*invoke name=",
    r"<\uff5c(?=tool\u2581|DSML)",
    r"<\|channel\|>\w+ to=|<\|start\|>assistant to=",
    r"```tool_code\n",
    r"\b(?:{names})\s*(?=<arg_key>)|<(?:{names})>(?=\s*<)",
)
_MARKED: Final = (
    r"\s*(?:[{{\[<`]|call:|function|tool\u2581|DSML|[\"']?(?:functions\.)?(?:{names})\b)"
)
# A tool's name and nothing but marks between it and its arguments.
_NAMED: Final = (
    r"\b(?P<name>{names})(?::\d+)?(?:\[ARGS\])?(?: ?<[^<>]*>)? ?(?:json)? ?(?:```\w*)?\(?\Z"
)
_REACT: Final = (
    r"^[^\w\n]*action[^\w\n]*:[^\w\n]*(?:functions\.)?(?:{names})\b[^\n]*\n"
    r"\W{{0,20}}action[ _]?input[^\w\n]*?:(?P<given>.*)\Z"
)
_PYTHON: Final = (
    r"^[ \t>*#`-]*(?:action[^\w\n]*:[^\w\n]*)?"
    r"(?P<code>(?:print\()?\[?(?:functions\.)?(?:{names})[.(].*)\Z"
)
_LENIENT: Final = (
    rf"[\"'](?:{'|'.join(_NAME_KEYS)})[\"']\s*:\s*[\"'](?:functions\.)?(?:{{names}})\s*[\"']"
)
_LENIENT_ARGUMENTS: Final = re.compile(rf"[\"'](?:{'|'.join(_ARGUMENT_KEYS)})[\"']\s*:")
_TAG: Final = re.compile(r"<[^<>\s][^<>]{0,80}>")
_FLAGS: Final = re.IGNORECASE | re.MULTILINE | re.DOTALL
# Far above what any reply of calls has; keeps a page of braces or marks cheap.
_MOST: Final = 40
_LONGEST: Final = 20_000
# A tool's name stands no farther before its arguments.
_NEAR: Final = 200
_UNREADABLE: Final = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


def holds_call(text: str, tools: Sequence[ToolSpec]) -> bool:
    """Whether the text ends with a call in a form that some model was trained to write."""
    names = {
        tool.name.casefold(): frozenset(one.name.casefold() for one in tool.inputs if one.name)
        for tool in tools
    }
    return any(read(text, names) for read in (_marked, _as_json, _as_react, _as_python))


def _pattern(form: str, names: Names) -> re.Pattern[str]:
    return re.compile(form.format(names="|".join(map(re.escape, names)) or "(?!)"), _FLAGS)


def _marked(text: str, names: Names) -> bool:
    """A mark that opens the reply or stands before something like a call, up to the end."""
    begins = _pattern(_MARKED, names)
    return any(
        (not text[: mark.start()].strip() or begins.match(text, mark.end()))
        and _ends(text[mark.end() :])
        for form in _MARKS
        for mark in islice(_pattern(form, names).finditer(text), _MOST)
    )


def _ends(given: str) -> bool:
    """Whether what a mark opens goes up to the end, whole or cut."""
    given = given.strip()
    opened = given.startswith(("{", "["))
    if opened:
        try:
            _, place = json.JSONDecoder(strict=False).raw_decode(given)
        except (ValueError, RecursionError):
            pass
        else:
            return _is_nothing(given[place:])
    *_, last = _TAG.split(given)
    if last == given:
        return opened or given.endswith(tuple(")]}>`"))
    last = last.strip()
    return _is_nothing(last) or (last.startswith(("{", "[")) and _ends(last))


def _is_nothing(rest: str) -> bool:
    """No words: closing brackets, fences and marks."""
    return re.search(r"\w", _TAG.sub("", rest)) is None


def _as_json(text: str, names: Names) -> bool:
    named = _pattern(_NAMED, names)
    for value, start, end in _objects(text, names):
        if not _is_nothing(text[end:]):
            continue
        before = named.search(" ".join(text[max(0, start - _NEAR) : start].split()))
        if _is_call(value, names) or (before and _fits(value, names[before["name"].casefold()])):
            return True
    return False


def _objects(text: str, names: Names) -> Iterator[tuple[object, int, int]]:
    """The JSON objects in the text with their places, from left to right."""
    decoder, place = json.JSONDecoder(strict=False), 0
    lenient = _pattern(_LENIENT, names)
    for _ in range(_MOST):
        start = text.find("{", place)
        if start < 0:
            return
        value: object
        try:
            value, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            place = start + 1
            if not (lenient.search(text, start) and _LENIENT_ARGUMENTS.search(text, start)):
                continue
            value, place = _read_leniently(text, start)
        yield value, start, place


def _read_leniently(text: str, start: int) -> tuple[object, int]:
    """An object with single quotes, commas too many or brackets too few; None if it is none."""
    end, missing = _span(text, start)
    body = re.sub(r",(\s*[}\]])", r"\1", text[start:end].rstrip("`\n ,") + missing)
    for read in (json.JSONDecoder(strict=False).decode, ast.literal_eval):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know
                return read(body), end
        except _UNREADABLE:
            continue
    return None, start + 1


def _span(text: str, start: int) -> tuple[int, str]:
    """Where the object ends, and the brackets that it lacks."""
    open_, quote, place = [], "", start
    while place < min(len(text), start + _LONGEST):
        char = text[place]
        if quote:
            place += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "{[":
            open_.append("}" if char == "{" else "]")
        elif open_ and char == open_[-1]:
            open_.pop()
        place += 1
        if not open_:
            break
    return place, "".join(reversed(open_))


def _is_call(value: object, names: Names) -> bool:
    if isinstance(value, list):
        return any(_is_call(one, names) for one in value)
    if not isinstance(value, dict) or not _RESULT_KEYS.isdisjoint(value):
        return False
    if any(_is_call(value.get(key), names) for key in _HOLDER_KEYS):
        return True
    if len(value) == 1:
        ((only, given),) = value.items()
        return _plain(only) in names and _fits(given, names[_plain(only)])
    key = next((key for key in _NAME_KEYS if _plain(value.get(key)) in names), None)
    if key is None:
        return False
    rest = {name: given for name, given in value.items() if name not in (key, "type", "id")}
    has_arguments = any(name in rest for name in _ARGUMENT_KEYS)
    return has_arguments or _fits(rest, names[_plain(value[key])])


def _plain(name: object) -> str:
    return name.strip().casefold().removeprefix("functions.") if isinstance(name, str) else ""


def _fits(given: object, parameters: frozenset[str]) -> bool:
    """Whether these are arguments of a tool with such parameters."""
    return isinstance(given, dict) and bool(given) and parameters.issuperset(map(_plain, given))


def _as_react(text: str, names: Names) -> bool:
    found = _pattern(_REACT, names).search(text)
    if found is None:
        return False
    given = found["given"].strip("`* \n\t").removeprefix("json").strip()
    return "\n" not in given or (given.startswith("{") and _ends(given))


def _as_python(text: str, names: Names) -> bool:
    """Calls in Python, on lines of their own: `[OCR(image="a.png")]`."""
    found = _pattern(_PYTHON, names).search(text)
    if found is None:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = ast.parse(found["code"].rstrip("`.; \n\t")).body
        return all(isinstance(line, ast.Expr) and _is_python(line.value, names) for line in lines)
    except _UNREADABLE:
        return False


def _is_python(code: ast.expr, names: Names) -> bool:
    if isinstance(code, ast.List | ast.Tuple):
        return bool(code.elts) and all(_is_python(one, names) for one in code.elts)
    if not isinstance(code, ast.Call):
        return False
    called = ast.unparse(code.func).casefold()
    if called == "print":
        return any(_is_python(one, names) for one in code.args)
    said = any(isinstance(one, ast.Name) for one in code.args)  # as in: OCR(twice)
    return not names.keys().isdisjoint(called.split(".")) and not said
