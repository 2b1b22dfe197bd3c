"""The tools of this machine as a ToolSource."""

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

from pydantic import JsonValue, ValidationError

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.tools.catalog import load_tool, tool_names
from gta_bench.tools.contract import Availability, Equipment, Tool, ToolInput, Unavailable
from gta_bench.tools.offering import check_call, check_name


class Toolbox:
    """Tools that run in this process; each is created when it is first used."""

    def __init__(self, equipment: Equipment, names: Iterable[str] | None = None) -> None:
        self._equipment = equipment
        self._names = tuple(tool_names() if names is None else names)
        self._made: dict[str, Tool[Any]] = {}

    def specs(self) -> dict[str, ToolSpec]:
        """Return the definition of every tool."""
        return {name: load_tool(name).spec() for name in self._names}

    def tool(self, name: str) -> Tool[Any]:
        """Return the tool of that name; raises CallRefused for an unknown one."""
        check_name(self._names, name)
        if name not in self._made:
            self._made[name] = load_tool(name)(self._equipment)
        return self._made[name]

    def availability(self, name: str) -> Availability:
        """Return whether a tool works here, and with which backend."""
        return self.tool(name).check()

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Check the arguments, call the tool and record what ran."""
        tool = self.tool(name)
        typed = check_call({name: tool.spec()}, name, arguments)
        # Some tools read a list where their definition has a text.
        lists = {key: value for key, value in arguments.items() if isinstance(value, list)}
        given = _parse_input(tool.input_type, name, typed | lists)
        state = tool.check()
        if isinstance(state, Unavailable):
            raise ToolUnavailable(f"{name} is not available here: {state.reason}", fix=state.fix)
        start = perf_counter()
        made = await tool.apply(workspace, given)
        return ToolResult(
            parts=made.parts,
            tool=name,
            tool_version=tool.version,
            backend=made.backend,
            jail=made.jail,
            seconds=perf_counter() - start,
        )


def _parse_input(kind: type[ToolInput], name: str, arguments: Mapping[str, JsonValue]) -> ToolInput:
    try:
        return kind.model_validate(arguments)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        known = ", ".join(kind.model_fields)
        raise ToolError(f"{name}: argument {where!r}: {first['msg']}. It takes: {known}.") from exc
