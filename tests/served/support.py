"""A tool server on a free port of loopback, in a thread of its own, and small tools to serve."""

import asyncio
import hashlib
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import Parameter, ToolSpec
from gta_bench.serving.app import make_app
from gta_bench.serving.choice import ServerAddress
from gta_bench.serving.client import Patience, RemoteSource, connect
from gta_bench.serving.limits import ServerLimits
from gta_bench.serving.listening import bind_socket, make_server
from gta_bench.serving.tokens import RunTokens
from gta_bench.serving.wire import FileRef, OpenedWorkspace, OpenWorkspace
from gta_bench.tools.source import ToolSource

TOKEN = "token-of-the-first-run-0001"
OTHER = "token-of-another-run-00002"
HASTY = Patience(attempts=3, first_delay=0.05, longest_delay=0.1, connect_seconds=5, seconds=60)
CERTIFICATES = httpx.create_ssl_context()  # once: it takes longer than a hundred requests
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


class SmallTools:
    """Tools for tests of what carries them: each does one thing."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def specs(self) -> dict[str, ToolSpec]:
        text = Parameter(type="text", name="text")
        number = Parameter(type="int", name="size")
        image = Parameter(type="image", name="image")
        seconds = Parameter(type="float", name="seconds", optional=True, default=0.0)
        inputs = {
            "Echo": (text,),
            "Write": (number,),
            "Draw": (),
            "Size": (image,),
            "Wait": (seconds,),
            "Refuse": (text,),
            "Missing": (),
            "Crash": (),
        }
        return {
            name: ToolSpec(name=name, description=f"{name} it.", inputs=taken)
            for name, taken in inputs.items()
        }

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        self.calls.append(name)
        known: dict[str, Callable[..., Awaitable[ReplyPart]]] = {
            "Echo": self._echo,
            "Write": self._write,
            "Draw": self._draw,
            "Size": self._size,
            "Wait": self._wait,
            "Refuse": self._refuse,
            "Missing": self._missing,
            "Crash": self._crash,
        }
        if name not in known:
            raise ToolError(f"There is no tool {name!r}.")
        part = await known[name](workspace, dict(arguments))
        return ToolResult(parts=(part,), tool=name, tool_version="1", backend="small")

    async def _echo(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        return ReplyPart(type="text", content=str(given.get("text")))

    async def _write(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        data = bytes(range(256)) * (int(given["size"]) // 256)
        return ReplyPart(type="file", content=workspace.write("data.bin", data).path)

    async def _draw(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        return ReplyPart(type="image", content=workspace.write("plot.png", PNG).path)

    async def _size(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        data = workspace.read(str(given["image"]))
        said = f"{len(data)} {hashlib.sha256(data).hexdigest()}"
        return ReplyPart(type="text", content=said)

    async def _wait(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        await asyncio.sleep(float(given.get("seconds", 0)))
        return ReplyPart(type="text", content="waited")

    async def _refuse(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        raise ToolError(f"Refuse: {given.get('text')!r} is not wanted.")

    async def _missing(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        raise ToolUnavailable("A key is missing.", fix="export KEY=…")

    async def _crash(self, workspace: Workspace, given: dict[str, Any]) -> ReplyPart:
        raise RuntimeError("a bug")


@dataclass
class Served:
    """A running server, and how to talk to it by hand."""

    port: int
    loop: asyncio.AbstractEventLoop
    limits: ServerLimits = field(default_factory=ServerLimits)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str | None = TOKEN, **options: Any) -> httpx.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=60, verify=CERTIFICATES, **options
        )

    def open(self, files: Mapping[str, bytes] | None = None, token: str = TOKEN) -> OpenedWorkspace:
        """A workspace with these files, opened step by step."""
        with self.client(token) as client:
            refs = []
            for path, data in (files or {}).items():
                digest = hashlib.sha256(data).hexdigest()
                sent = client.put(f"/v1/artefacts/{digest}", content=data)
                assert sent.status_code == 204, sent.text
                refs.append(FileRef(path=path, sha256=digest, bytes=len(data)))
            wanted = OpenWorkspace(files=tuple(refs)).model_dump_json()
            answer = client.post("/v1/workspaces", content=wanted)
            assert answer.status_code == 201, answer.text
            return OpenedWorkspace.model_validate_json(answer.content)

    def call(
        self, space: OpenedWorkspace, tool: str, arguments: Any, **headers: str
    ) -> httpx.Response:
        with self.client(space.token) as client:
            path = f"/v1/w/{space.workspace}/tools/{tool}"
            return client.post(path, json=arguments, headers=headers)


@contextmanager
def tool_server(
    source: ToolSource,
    folder: Path,
    *,
    tokens: tuple[str, ...] = (TOKEN, OTHER),
    limits: ServerLimits | None = None,
    port: int = 0,
) -> Iterator[Served]:
    """The server, answering; ended and closed afterwards."""
    chosen = limits or ServerLimits()
    started = threading.Event()
    box: list[Any] = []

    async def serve() -> None:
        app = make_app(source, tokens=RunTokens(tokens), folder=folder, limits=chosen)
        with bind_socket("127.0.0.1", port) as listening:
            server = make_server(app, chosen)
            box.extend([server, listening.getsockname()[1], asyncio.get_running_loop()])
            running = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started and not running.done():
                await asyncio.sleep(0.01)
            started.set()
            await running

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(30)
        yield Served(box[1], box[2], chosen)
    finally:
        if box:
            box[0].should_exit = True
        thread.join(30)


@contextmanager
def workspace_of(folder: Path, files: Mapping[str, bytes]) -> Iterator[Workspace]:
    sources = folder / f"sources-{secrets.token_hex(4)}"
    sources.mkdir(parents=True)
    attached = {}
    for path, data in files.items():
        file = sources / path.rpartition("/")[2]
        file.write_bytes(data)
        attached[path] = file
    yield Workspace.create(folder / f"space-{secrets.token_hex(4)}", attached)


def contents(workspace: Workspace) -> dict[str, bytes]:
    """Every file of a workspace."""
    return {path: workspace.read(path) for path in workspace.listing()}


async def connected(served: Served, protocol: Any = "http", **options: Any) -> RemoteSource:
    server = ServerAddress(protocol, served.url)
    return await connect(server, options.get("token", TOKEN), options.get("patience", HASTY))
