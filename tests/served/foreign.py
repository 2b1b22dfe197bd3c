"""Foreign MCP servers for tests: settings that start them, and one on loopback."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from gta_bench.confine.workspace import Workspace
from gta_bench.records.calls import ToolResult
from gta_bench.serving.server_tools import ServerTools, open_server
from gta_bench.settings import ToolServerSettings
from tests.served.own_server import make_server

OWN = Path(__file__).with_name("own_server.py")
BAD = Path(__file__).with_name("bad_server.py")
Value = TypeVar("Value")


def own(*args: str, **settings: Any) -> ToolServerSettings:
    """The server with every kind of content."""
    given: dict[str, Any] = {"command": sys.executable, "args": [str(OWN), *args], **settings}
    return ToolServerSettings.model_validate(given)


def bad(how: str, *args: str, **settings: Any) -> ToolServerSettings:
    """A server that misbehaves."""
    given: dict[str, Any] = {"command": sys.executable, "args": [str(BAD), how, *args], **settings}
    return ToolServerSettings.model_validate(given)


def use(
    server: ToolServerSettings,
    folder: Path,
    work: Callable[[ServerTools, Workspace], Awaitable[Value]],
    attachments: Mapping[str, Path] | None = None,
) -> Value:
    """Open the server as `own` with a new workspace, and do the work."""
    workspace = Workspace.create(folder, attachments or {})

    async def go() -> Value:
        async with open_server("own", server, workspace) as source:
            return await work(source, workspace)

    return asyncio.run(go())


def call_once(
    server: ToolServerSettings, folder: Path, name: str, **arguments: JsonValue
) -> ToolResult:
    """The result of one call."""

    async def work(source: ServerTools, workspace: Workspace) -> ToolResult:
        return await source.call(workspace, f"own__{name}", arguments)

    return use(server, folder, work)


@contextmanager
def on_loopback(token: str) -> Iterator[str]:
    """The address of the server with every kind of content; it wants the token."""
    manager = StreamableHTTPSessionManager(make_server())

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"authorization") == f"Bearer {token}".encode():
            await manager.handle_request(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    app = Starlette(lifespan=lifespan)
    app.mount("/mcp", guarded)
    # uvloop, if a test without network imports it first, keeps the blocked sockets of that test.
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="error", ws="none", loop="asyncio"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended before it had started"
            threading.Event().wait(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp/"
    finally:
        server.should_exit = True
        thread.join()
