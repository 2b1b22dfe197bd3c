"""Tool calls that a model wrote as text, because its server did not parse them as calls.

A reply counts as such a call only if it ends with one; with words after it, it is an answer that
mentions a call. Such calls are counted and reported to the model, but never made.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from gta_bench.agents.react_parser import UNREADABLE, find_object_end, read_literal
from gta_bench.records.tools import ToolSpec

Names = Mapping[str, frozenset[str]]

_NAME_KEYS: Final = (
    *("name", "function", "function_name", "tool", "tool_name"),
    *("action", "recipient_name"),
)
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "action_input")
_HOLDER_KEYS: Final = ("function", "function_call", "tool_call", "tool_calls", "tool_uses")
# A reply that states the result of a call does not make the call.
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
# Far above the calls of any real reply; keeps a page of braces or marks cheap.
_MOST: Final = 40
_LONGEST: Final = 20_000
# The most characters between a tool's name and its arguments.
_NEAR: Final = 200


def ends_with_call(text: str, tools: Sequence[ToolSpec]) -> bool:
    """Whether the text ends with a call in one of the forms that models are trained to write."""
    names = {
        tool.name.casefold(): frozenset(one.name.casefold() for one in tool.inputs if one.name)
        for tool in tools
    }
    return any(read(text, names) for read in (_marked, _as_json, _as_react, _as_python))


def _pattern(form: str, names: Names) -> re.Pattern[str]:
    return _compile(form, tuple(names))


@lru_cache(maxsize=1000)
def _compile(form: str, names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(form.format(names="|".join(map(re.escape, names)) or "(?!)"), _FLAGS)


def _marked(text: str, names: Names) -> bool:
    """Whether a mark at the start, or one before something like a call, extends to the end."""
    begins = _pattern(_MARKED, names)
    return any(
        (not text[: mark.start()].strip() or begins.match(text, mark.end()))
        and _ends(text[mark.end() :])
        for form in _MARKS
        for mark in islice(_pattern(form, names).finditer(text), _MOST)
    )


def _ends(given: str) -> bool:
    """Whether the text after a mark is a call up to the end, complete or cut off."""
    given = given.strip()
    opened = given.startswith(("{", "["))
    if opened:
        try:
            _, end = json.JSONDecoder(strict=False).raw_decode(given)
        except (ValueError, RecursionError):
            pass
        else:
            return _is_wordless(given[end:])
    *_, last = _TAG.split(given)
    if last == given:
        return opened or given.endswith(tuple(")]}>`"))
    last = last.strip()
    return _is_wordless(last) or (last.startswith(("{", "[")) and _ends(last))


def _is_wordless(rest: str) -> bool:
    """Whether the text has only closing brackets, fences and marks."""
    return re.search(r"\w", _TAG.sub("", rest)) is None


def _as_json(text: str, names: Names) -> bool:
    named = _pattern(_NAMED, names)
    for value, start, end in _objects(text, names):
        if not _is_wordless(text[end:]):
            continue
        before = named.search(" ".join(text[max(0, start - _NEAR) : start].split()))
        if _is_call(value, names) or (before and _fits(value, names[before["name"].casefold()])):
            return True
    return False


def _objects(text: str, names: Names) -> Iterator[tuple[object, int, int]]:
    """Yield the JSON objects in the text with start and end, from left to right."""
    decoder, end = json.JSONDecoder(strict=False), 0
    lenient = _pattern(_LENIENT, names)
    for _ in range(_MOST):
        start = text.find("{", end)
        if start < 0:
            return
        value: object
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
            if not (lenient.search(text, start) and _LENIENT_ARGUMENTS.search(text, start)):
                continue
            value, end = _read_leniently(text, start)
        yield value, start, end


def _read_leniently(text: str, start: int) -> tuple[object, int]:
    """Return an object with single quotes, extra commas or missing brackets; None if it fails."""
    end, missing = find_object_end(text[: start + _LONGEST], start)
    body = re.sub(r",(\s*[}\]])", r"\1", text[start:end].rstrip("`\n ,") + missing)
    for read in (json.JSONDecoder(strict=False).decode, read_literal):
        try:
            return read(body), end
        except UNREADABLE:
            continue
    return None, start + 1


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
    """Whether these can be arguments of a tool with these parameters."""
    return isinstance(given, dict) and bool(given) and parameters.issuperset(map(_plain, given))


def _as_react(text: str, names: Names) -> bool:
    found = _pattern(_REACT, names).search(text)
    if found is None:
        return False
    given = found["given"].strip("`* \n\t").removeprefix("json").strip()
    return "\n" not in given or (given.startswith("{") and _ends(given))


def _as_python(text: str, names: Names) -> bool:
    """Whether the text ends with calls in Python on their own lines: `[OCR(image="a.png")]`."""
    found = _pattern(_PYTHON, names).search(text)
    if found is None:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = ast.parse(found["code"].rstrip("`.; \n\t")).body
        return all(isinstance(line, ast.Expr) and _is_python(line.value, names) for line in lines)
    except UNREADABLE:
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
