"""The tools of a run: this machine's, opened once, or a server's, connected for each unit."""

import asyncio

from gta_bench.confine.workspace import Workspace
from gta_bench.serving.choice import TOKEN_VARIABLE, ToolServer, parse_tools
from gta_bench.serving.connecting import RemoteSource, connect
from gta_bench.serving.exchange import Patience
from gta_bench.settings import read_key
from gta_bench.tasks.context import current_settings, current_tools
from gta_bench.tools.equipment import open_equipment
from gta_bench.tools.source import ToolSource
from gta_bench.tools.toolbox import Toolbox


class RunTools:
    """Where every sample of a run gets its tools from."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._source: ToolSource | None = None
        self._remote: dict[tuple[str, int], RemoteSource] = {}

    async def for_task(self, task: str, epoch: int) -> ToolSource:
        """The tools as one unit meets them; `release` ends their use."""
        server = parse_tools(current_tools())
        if server is not None:
            # Connections belong to an event loop, and an evaluation may have several in turn.
            source = await connect_tools(server)
            self._remote[task, epoch] = source
            return source
        async with self._opening:
            if self._source is None:
                self._source = Toolbox(await open_equipment(current_settings()))
            return self._source

    async def release(self, task: str, epoch: int, workspace: Workspace) -> None:
        """The unit is done: its workspace on the server is closed, and the connection."""
        source = self._remote.pop((task, epoch), None)
        if source is not None:
            try:
                await source.release(workspace)
            finally:
                await source.aclose()


async def connect_tools(server: ToolServer, patience: Patience | None = None) -> RemoteSource:
    """A server's tools, with the token of this environment."""
    return await connect(server, read_key(TOKEN_VARIABLE), patience)


async def check_tools(tools: str) -> None:
    """Fail now, in one line, if the tools of a run cannot be reached at all."""
    server = parse_tools(tools)
    if server is not None:
        source = await connect_tools(server, Patience(attempts=2))
        await source.aclose()
