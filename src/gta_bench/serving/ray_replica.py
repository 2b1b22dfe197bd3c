"""The tools of a group in a process of a Ray cluster; files travel with each call.

Nothing is kept between calls, so a replica may end at any time and another one repeat its calls.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.serving.spaces import CallWorkspace, make_failure
from gta_bench.settings import Settings
from gta_bench.tools.equipment import open_equipment
from gta_bench.tools.toolbox import Toolbox


class Returned(NamedTuple):
    """The outcome of a call as JSON, a ToolResult or a CallFailure, and the files it wrote."""

    done: bool
    outcome: str
    files: tuple[tuple[str, bytes], ...] = ()


class ToolReplica:
    """Some tools of the catalog, with this process's packages."""

    def __init__(self, names: tuple[str, ...], settings: Settings) -> None:
        self._names = names
        self._settings = settings
        self._opening = asyncio.Lock()
        self._toolbox: Toolbox | None = None

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], files: Mapping[str, bytes]
    ) -> Returned:
        """Call a tool in a workspace with these files."""
        toolbox = await self._open()
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="gta-call-"))
        try:
            workspace = await asyncio.to_thread(_create_workspace, folder / "space", files)
            try:
                result = await toolbox.call(workspace, name, arguments)
            except (ToolUnavailable, ToolError) as exc:
                return Returned(False, make_failure(exc).model_dump_json())
            written = [(one.path, workspace.read(one.path)) for one in workspace.written]
            return Returned(True, result.model_dump_json(), tuple(written))
        finally:
            await asyncio.to_thread(remove_tree, folder)

    async def _open(self) -> Toolbox:
        async with self._opening:
            if self._toolbox is None:
                self._toolbox = Toolbox(await open_equipment(self._settings), self._names)
            return self._toolbox


def _create_workspace(folder: Path, files: Mapping[str, bytes]) -> CallWorkspace:
    """Create a workspace with the caller's files, outputs oldest first."""
    sent = folder.with_name("sent")
    sent.mkdir()
    inputs = {}
    for number, (path, data) in enumerate(files.items()):
        if path.startswith("inputs/"):
            inputs[path] = sent / str(number)
            inputs[path].write_bytes(data)
    workspace = Workspace.create(folder, inputs)
    for path, data in files.items():
        if path.startswith("outputs/"):
            workspace.write(path.removeprefix("outputs/"), data, overwrite=True)
    return CallWorkspace(workspace.root, workspace.quota)
