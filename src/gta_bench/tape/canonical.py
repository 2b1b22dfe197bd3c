"""A call as a tape knows it: the same call in other words is the same call."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tape import TapeCall
from gta_bench.records.tools import FILE_TYPES, ToolSpec


def canonical_json(value: JsonValue) -> str:
    """The one JSON text of a value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_arguments(
    spec: ToolSpec | None, arguments: Mapping[str, JsonValue], workspace: Workspace
) -> dict[str, JsonValue]:
    """Without what equals a default, and with files by their portable paths."""
    kept: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        parameter = None if spec is None else spec.input(name)
        if parameter is not None and parameter.optional and _same(value, parameter.default):
            continue
        if parameter is not None and parameter.type in FILE_TYPES and isinstance(value, str):
            with suppress(ToolError):  # no such file: the spelling stands for itself
                value = workspace.resolve(value)
        kept[name] = value
    return kept


def named_files(arguments: Mapping[str, JsonValue], workspace: Workspace) -> dict[str, str]:
    """The digests of the workspace's files that the arguments mention anywhere.

    Tools take files in lists, inside Markdown and in arguments that are declared as text, so
    every text is searched.
    """
    texts = list(_texts(dict(arguments)))
    found = {}
    for path in workspace.listing():
        if any(path in text for text in texts):
            with suppress(ToolError):  # no regular file: no tool can read it either
                data = workspace.read(path, most_bytes=workspace.quota.input_bytes)
                found[path] = hashlib.sha256(data).hexdigest()
    return found


def call_text(call: TapeCall) -> str:
    """A call for people, on one line."""
    arguments = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()
    )
    return f"{call.tool}({arguments})"


def _same(one: JsonValue, two: JsonValue) -> bool:
    """Equal as JSON: True is not 1."""
    return canonical_json(one) == canonical_json(two)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
