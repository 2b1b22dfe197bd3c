"""The tools of one unit by MCP, on a socket of the file system, for a harness that works on it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from starlette.applications import Starlette
from starlette.routing import Route

from gta_bench.confine.workspace import Workspace
from gta_bench.serving.calling import Caller
from gta_bench.serving.gate import App, Gate
from gta_bench.serving.limits import ServerLimits
from gta_bench.serving.listening import make_server
from gta_bench.serving.mcp_face import McpFace
from gta_bench.serving.spaces import Space, Spaces
from gta_bench.serving.tokens import RunTokens
from gta_bench.tools.source import ToolSource

# Of one harness at once. Each takes a file of the run's own process, which all units share.
CONNECTIONS = 64


@asynccontextmanager
async def serve_unit(
    source: ToolSource, workspace: Workspace, token: str, path: Path
) -> AsyncIterator[None]:
    """Serve while the block lasts; whoever has the token may call the tools in that workspace."""
    limits, tokens = ServerLimits(connections=CONNECTIONS), RunTokens([token])
    run = tokens.run(token)
    assert run is not None
    space = Space("unit", run, run.workspace_token("unit"), workspace)
    face = McpFace(Caller(source, limits), space=space, blind=True)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with face.running():
            yield

    app = Starlette(routes=[Route("/mcp", face.over_http(limits.body_bytes))], lifespan=lifespan)
    gate = Gate(cast(App, app), tokens=tokens, spaces=Spaces(path.parent, limits), limits=limits)
    server = make_server(gate, limits, guest=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        path.chmod(0o666)  # the harness may be another user; nobody else gets to the folder
        listening.listen()  # who is quicker than the server's start waits, and is not refused
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield
        finally:
            server.should_exit = True
            await serving
