"""The interface through which agents, harnesses and servers use tools."""

from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec


class ToolSource(Protocol):
    """Offers tools and calls them: a toolbox, a server, a tape, a control."""

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return every tool that is offered, by name."""
        ...

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool. ToolError is for the agent, ToolUnavailable for the agent and the user."""
        ...


class PlaceholderImages:
    """A source for replays of reference dialogues.

    It replaces the reference's placeholder image by the newest image that the task has made.
    """

    def __init__(self, source: ToolSource) -> None:
        self._source = source

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return the tools of the wrapped source."""
        return self._source.specs()

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool with a real file instead of the placeholder, if the task has made one."""
        newest = workspace.newest_image()
        real = {
            key: newest if value == PLACEHOLDER_IMAGE and newest is not None else value
            for key, value in arguments.items()
        }
        return await self._source.call(workspace, name, real)
