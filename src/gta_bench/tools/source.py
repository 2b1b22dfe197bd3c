"""The one interface that agents, harnesses and servers know of tools."""

from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec


class ToolSource(Protocol):
    """Something that offers tools and calls them: a toolbox, a server, a tape, a control."""

    def specs(self) -> Mapping[str, ToolSpec]:
        """Every tool that is offered, by name."""
        ...

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool; ToolError is for the agent, ToolUnavailable for both agent and user."""
        ...
