"""The reference's placeholder image, replaced by the image that a tool of the task really made."""

from collections.abc import Mapping

from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.tools.source import ToolSource


class PlaceholderImages:
    """A source for replays of reference dialogues: the placeholder is the newest image output."""

    def __init__(self, source: ToolSource) -> None:
        self._source = source

    def specs(self) -> Mapping[str, ToolSpec]:
        """What the wrapped source offers."""
        return self._source.specs()

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call with real files in place of the placeholder, where the task has made one."""
        newest = workspace.newest_image()
        real = {
            key: newest if value == PLACEHOLDER_IMAGE and newest is not None else value
            for key, value in arguments.items()
        }
        return await self._source.call(workspace, name, real)
