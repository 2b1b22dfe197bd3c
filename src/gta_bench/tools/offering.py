"""Which tools a task offers, and the one rule that decides whether a call may be made.

Agents, harnesses, training environments, tapes and toolboxes all check calls here, so that a wrong
call gets the same message everywhere, before a tape is asked and before a tool runs.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import Dataset
from gta_bench.errors import CallRefused
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import (
    ALL_TOOLS,
    FILE_TYPES,
    SERVER_SEPARATOR,
    ParameterType,
    ToolSpec,
)
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tools.catalog import tool_names
from gta_bench.tools.source import ToolSource

SHOWN = 80


def list_own_tools(dataset: Dataset, task: AtomicTask | WorkflowTask) -> dict[str, ToolSpec | None]:
    """Return the tools of a task, with the dataset's definitions if it has any.

    A Workflow task that lists none gets those of the dataset, or all of the catalog.
    """
    if isinstance(task, AtomicTask):
        return dict(task.offered)
    names = task.tools or tuple(dataset.tools) or tool_names()
    return {name: dataset.tools.get(name) for name in names}


def list_offered_tools(
    own: Mapping[str, ToolSpec | None], known: Mapping[str, ToolSpec]
) -> list[ToolSpec]:
    """Return each tool as the source defines it, or else as the dataset does.

    `NAME__*` stands for all tools of the tool server NAME.
    """
    found: dict[str, ToolSpec | None] = {}
    for name, spec in own.items():
        if name.endswith(ALL_TOOLS):
            server = name.removesuffix(ALL_TOOLS)
            found |= {
                one.name: one
                for one in known.values()
                if one.served is not None and one.served.server == server
            }
        else:
            found[name] = known.get(name) or spec
    return [spec for spec in found.values() if spec is not None]


def find_server(name: str, spec: ToolSpec | None) -> str | None:
    """Return the tool server that a task's entry names, None for a tool of ours or the dataset."""
    server, separator, _ = name.partition(SERVER_SEPARATOR)
    return server if spec is None and server and separator else None


def check_call(
    offered: Mapping[str, ToolSpec], name: str, arguments: JsonValue | Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the arguments in their declared types; raises CallRefused with every problem.

    Types are as tolerant as the tools: `"3"` is an integer. An argument that is null is left out.

    >>> from gta_bench.records.tools import Parameter, ToolSpec
    >>> adder = ToolSpec(name="Add", inputs=(Parameter(name="a", type="int"),))
    >>> check_call({"Add": adder}, "Add", {"a": "3"})
    {'a': 3}
    >>> check_call({"Add": adder}, "Add", {"b": 1})
    Traceback (most recent call last):
    gta_bench.errors.CallRefused: Add: unknown argument 'b', the parameters are a; missing ...
    """
    check_name(offered, name)
    given = check_object(name, arguments)
    if offered[name].served is not None:
        return dict(given)  # its server checks them, with more than types
    # Native calls often omit an optional parameter by passing null.
    present = {key: value for key, value in given.items() if value is not None}
    tool = offered[name]
    names = [parameter.name for parameter in tool.inputs if parameter.name is not None]
    problems = [
        f"unknown argument {key!r}, the parameters are {', '.join(names) or 'none'}"
        for key in present
        if key not in names
    ]
    required = {parameter.name for parameter in tool.inputs if not parameter.optional}
    problems += [
        f"missing argument {key!r}" for key in names if key in required and key not in present
    ]
    typed: dict[str, JsonValue] = {}
    for key, value in present.items():
        parameter = tool.input(key)
        try:
            typed[key] = value if parameter is None else _convert(parameter.type, value)
        except ValueError as exc:
            text = json.dumps(value, ensure_ascii=False)
            short = text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
            problems.append(f"argument {key!r} must be {exc}, got {short}")
    if problems:
        raise CallRefused(f"{name}: {'; '.join(problems)}.", cause="arguments")
    return typed


def check_name(offered: Collection[str], name: str) -> None:
    """Raise CallRefused if no tool of that name is offered."""
    if name not in offered:
        known = ", ".join(dict.fromkeys(offered)) or "none"
        raise CallRefused(f"Unknown tool {name!r}. Known tools: {known}.", cause="tool")


def check_object(
    name: str, arguments: JsonValue | Mapping[str, JsonValue]
) -> Mapping[str, JsonValue]:
    """Return the arguments of a call; raises CallRefused if they are no object."""
    if not isinstance(arguments, Mapping):
        raise CallRefused(f"{name}: the arguments are no JSON object.", cause="arguments")
    return arguments


class JoinedTools:
    """Several sources as one; the first that has a tool of that name is called."""

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self._specs: dict[str, ToolSpec] = {}
        self._owners: dict[str, ToolSource] = {}
        for source in reversed(sources):
            specs = source.specs()
            self._specs |= specs
            self._owners |= dict.fromkeys(specs, source)

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return the tools of all sources."""
        return self._specs

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool of the source that has it."""
        check_name(self._specs, name)
        return await self._owners[name].call(workspace, name, arguments)


class OfferedTools:
    """A source that calls no other tools than those that a task offers.

    The arguments are checked by the wrapped source, because a tape may have a reply to a call of a
    reference that `check_call` refuses.
    """

    def __init__(self, source: ToolSource, offered: Sequence[ToolSpec]) -> None:
        self._source = source
        self._offered = {spec.name: spec for spec in offered}

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return the tools on offer."""
        return self._offered

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool; raises CallRefused if the task does not offer it."""
        check_name(self._offered, name)
        return await self._source.call(workspace, name, arguments)


def _convert(type: ParameterType, value: JsonValue) -> JsonValue:
    """Return the value in the declared type; the ValueError names what was expected."""
    if type in FILE_TYPES:
        if isinstance(value, str) and value.strip():
            return value.strip()
        raise ValueError("the path of a file")
    if type == "text":
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    written = value.strip().removesuffix(".") if isinstance(value, str) else value
    try:
        found: JsonValue = _READERS[type].validate_python(written)
    except ValidationError:
        raise ValueError(_EXPECTED[type]) from None
    # A number that fits stays as it was written: 3 is not recorded as 3.0.
    return value if type == "float" and _is_number(value) else found


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# The parsers that also read the fields of tools, so that both accept the same.
_READERS: Mapping[ParameterType, TypeAdapter[Any]] = {
    "int": TypeAdapter(int),
    "float": TypeAdapter(Annotated[float, Field(allow_inf_nan=False)]),
    "bool": TypeAdapter(bool),
}
_EXPECTED: Mapping[ParameterType, str] = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
}
