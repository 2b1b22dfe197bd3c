"""The tool server beside bare FastAPI and bare fastmcp, and under load for a minute."""

import asyncio
import json
import multiprocessing
import os
import random
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import httpx
import pytest
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import GtaError
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import Parameter, ToolSpec
from gta_bench.serving.choice import ServerAddress
from gta_bench.serving.client import connect
from tests.search_server import serving as search_service
from tests.served.examples import JAILED, LIGHT, MODELS, Call, light_files, media_files
from tests.served.support import workspace_of

pytestmark = [pytest.mark.measure, pytest.mark.usefixtures("loopback")]
TOKEN = "token-of-a-measured-run"
AT_ONCE = 16
SECONDS = 1.5
ROUNDS = 9


class Nothing:
    """A tool that does nothing."""

    def specs(self) -> dict[str, ToolSpec]:
        return {"Noop": ToolSpec(name="Noop", inputs=(Parameter(type="text", name="text"),))}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        part = ReplyPart(type="text", content="ok")
        return ToolResult(parts=(part,), tool=name, tool_version="1", backend="none")


def serve_ours(listening: socket.socket) -> None:
    from gta_bench.serving.app import make_app
    from gta_bench.serving.limits import ServerLimits
    from gta_bench.serving.listening import make_server
    from gta_bench.serving.tokens import RunTokens

    limits = ServerLimits(rate=1e6, burst=1e6)
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(Nothing(), tokens=RunTokens([TOKEN]), folder=Path(folder), limits=limits)
        asyncio.run(make_server(app, limits).serve(sockets=[listening]))


def serve_fastapi(listening: socket.socket) -> None:
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Given(BaseModel):
        text: str

    app = FastAPI()

    @app.post("/noop")
    async def noop(given: Given) -> ToolResult:
        part = ReplyPart(type="text", content="ok")
        return ToolResult(parts=(part,), tool="Noop", tool_version="1", backend="none")

    config = uvicorn.Config(app, log_config=None, access_log=False, loop="asyncio", http="h11")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


def serve_fastmcp(listening: socket.socket) -> None:
    import uvicorn
    from fastmcp import FastMCP

    server = FastMCP("bare")

    @server.tool
    async def Noop(text: str) -> str:
        return "ok"

    app = server.http_app(stateless_http=True, json_response=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, loop="asyncio", http="h11")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


class Server(NamedTuple):
    """A server in a process of its own."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """The time that it has computed; a busy machine does not change it much."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """The bytes that it holds."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


class Speed(NamedTuple):
    """Requests a second, by the clock and by the server's own computing time."""

    clock: float
    computing: float


@contextmanager
def process(serve: Callable[[socket.socket], None]) -> Iterator[Server]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        child = multiprocessing.get_context("fork").Process(target=serve, args=(listening,))
        child.start()
        try:
            yield Server(f"http://127.0.0.1:{listening.getsockname()[1]}", child.pid or 0)
        finally:
            child.terminate()
            child.join(20)


async def until_ready(url: str) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(200):
            try:
                await client.get(url)
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
            else:
                return
    raise AssertionError(f"{url} does not come up")


async def speed(server: Server, request: bytes) -> Speed:
    """With so many clients at once, each the least that can be one."""
    done, before = 0, server.cpu_seconds()
    end = time.perf_counter() + SECONDS
    port = int(server.url.rpartition(":")[2])

    async def one() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            done += 1
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(one())
    return Speed(done / SECONDS, done / max(0.01, server.cpu_seconds() - before))


async def compare(ours: Server, fastapi: Server, fastmcp: Server) -> dict[str, list[Speed]]:
    for server in (ours, fastapi, fastmcp):
        await until_ready(server.url)
    async with httpx.AsyncClient(base_url=ours.url) as client:
        headers = {"authorization": f"Bearer {TOKEN}"}
        opened = (await client.post("/v1/workspaces", content="{}", headers=headers)).json()

    def post(path: str, value: JsonValue) -> bytes:
        body = json.dumps(value).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
            f"authorization: Bearer {opened['token']}\r\ncontent-type: application/json\r\n"
            "accept: application/json, text/event-stream\r\n\r\n"
        )
        return head.encode() + body

    given: JsonValue = {"text": "x"}
    params: JsonValue = {"name": "Noop", "arguments": given}
    call: JsonValue = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    asked = {
        "http": (ours, post(f"/v1/w/{opened['workspace']}/tools/Noop", given)),
        "fastapi": (fastapi, post("/noop", given)),
        "mcp": (ours, post(opened["mcp"], call)),
        "fastmcp": (fastmcp, post("/mcp", call)),
    }
    found: dict[str, list[Speed]] = {name: [] for name in asked}
    for _ in range(ROUNDS):
        for name, (server, request) in asked.items():
            found[name].append(await speed(server, request))
    return found


def ratio(ours: list[Speed], theirs: list[Speed]) -> Speed:
    """The median of what rounds that followed each other compare to."""
    pairs = list(zip(ours, theirs, strict=True))
    return Speed(
        median(one.clock / other.clock for one, other in pairs),
        median(one.computing / other.computing for one, other in pairs),
    )


def test_a_call_that_does_nothing_costs_little_more_than_the_frameworks() -> None:
    with (
        process(serve_ours) as ours,
        process(serve_fastapi) as fastapi,
        process(serve_fastmcp) as fastmcp,
    ):
        found = asyncio.run(compare(ours, fastapi, fastmcp))
    for name, speeds in found.items():
        clock, computing = (median(values) for values in zip(*speeds, strict=True))
        print(f"{name}: {clock:.0f} requests a second, {computing:.0f} by its own time")
    http = ratio(found["http"], found["fastapi"])
    mcp = ratio(found["mcp"], found["fastmcp"])
    print(f"HTTP {http.clock:.2f} of FastAPI, {http.computing:.2f} by computing time")
    print(f"MCP {mcp.clock:.2f} of fastmcp, {mcp.computing:.2f} by computing time")
    print(f"load of the machine {os.getloadavg()}")
    assert http.computing >= 0.7
    assert mcp.computing >= 0.8


def serve_toolbox(listening: socket.socket, search: str) -> None:
    from gta_bench.serving.app import make_app
    from gta_bench.serving.limits import ServerLimits
    from gta_bench.serving.listening import make_server
    from gta_bench.serving.tokens import RunTokens
    from gta_bench.settings import Settings
    from gta_bench.tools.equipment import use_equipment
    from gta_bench.tools.toolbox import Toolbox

    written = {
        "endpoints": {"search": {"url": search}},
        "tools": {"GoogleSearch": {"backend": "searxng", "endpoint": "search"}},
    }

    async def serve(folder: Path) -> None:
        limits = ServerLimits()
        async with use_equipment(Settings.model_validate(written)) as equipment:
            app = make_app(
                Toolbox(equipment), tokens=RunTokens([TOKEN]), folder=folder, limits=limits
            )
            await make_server(app, limits).serve(sockets=[listening])

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(Path(folder)))


@dataclass
class Load:
    """What 64 clients have seen; calls that were only too slow are kept apart."""

    calls: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)


# Words of our own time limits: the server's, the jail's, an endpoint's.
LATE = ("took longer than", "was stopped after", "did not answer within")
QUICK: list[Call] = [*LIGHT[:7], ("GoogleSearch", {"query": "tea"})]
# Code, documents, sound and film in the jail; a model. Three read files that others make.
HEAVY = [
    *(call for call in JAILED if call[0] not in ("ReadPDF", "ReadPPTX", "ReadXLSX")),
    MODELS[0],
]


async def task(server: Server, load: Load, workspace: Workspace, calls: list[Call]) -> None:
    """A workspace, some calls, their files back, closed."""
    source = await connect(ServerAddress("http", server.url), TOKEN)
    for name, given in calls:
        start = time.perf_counter()
        try:
            await source.call(workspace, name, given)
        except GtaError as exc:
            kind = load.late if any(words in str(exc) for words in LATE) else load.wrong
            kind.append(f"{name}: {exc}")
        load.calls[name] += 1
        load.seconds.append(time.perf_counter() - start)
    await source.release(workspace)
    await source.aclose()


async def watch_memory(server: Server, end: float, load: Load) -> None:
    while time.perf_counter() < end:
        load.memory.append(server.memory())
        await asyncio.sleep(0.5)


async def loaded(server: Server, folder: Path, files: Mapping[str, bytes], seconds: float) -> Load:
    load = Load()
    end = time.perf_counter() + seconds

    async def client() -> None:
        while time.perf_counter() < end:
            with workspace_of(folder, files) as workspace:
                calls = [*random.choices(QUICK, k=5), *random.choices(HEAVY)]
                await task(server, load, workspace, calls)

    async with asyncio.TaskGroup() as group:
        group.create_task(watch_memory(server, end, load))
        for _ in range(64):
            group.create_task(client())
    return load


async def warmed(server: Server, folder: Path, files: Mapping[str, bytes]) -> Load:
    """Imports, fonts, the first of everything, then of everything in every thread."""
    load = Load()
    with workspace_of(folder, files) as workspace:
        await task(server, load, workspace, [*QUICK, *HEAVY])
    assert not load.wrong, load.wrong
    return await loaded(server, folder, files, 30)


def test_sixty_four_clients_for_a_minute_fail_nowhere_and_memory_stays(tmp_path: Path) -> None:
    files = {**light_files(), **media_files(tmp_path)}
    with search_service() as search:
        search.reply = {"results": [{"title": "Tea", "content": "A drink."}]}
        with process(partial(serve_toolbox, search=search.url)) as server:
            asyncio.run(until_ready(server.url))
            asyncio.run(warmed(server, tmp_path, files))
            load = asyncio.run(loaded(server, tmp_path, files, 60))
    quarter = len(load.memory) // 4
    first, last = (sum(part) / quarter for part in (load.memory[:quarter], load.memory[-quarter:]))
    slowest = max(load.seconds)
    print(f"{load.calls.total()} calls, the slowest {slowest:.0f} s: {dict(load.calls)}")
    print(f"{len(load.wrong)} went wrong, {len(load.late)} were too late: {load.late[:3]}")
    print(f"memory {first / 2**20:.0f} MiB in the first quarter, {last / 2**20:.0f} in the last")
    print(f"load of the machine {os.getloadavg()}")
    assert not load.wrong, load.wrong[:3]
    assert not load.late, "the machine was too busy, or the server too slow"
    assert last < first * 1.1
