"""A proxy between any MCP client and a server on standard input and output that records calls.

Every byte is passed on as it is. What is recorded is read from a copy, in a thread of its own, so
that neither side waits for the tape.
"""

import asyncio
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import mcp_types as types
from pydantic import JsonValue, ValidationError

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem, ToolError
from gta_bench.records.calls import ToolResult
from gta_bench.records.tape import CallLine
from gta_bench.records.tool_servers import pin_servers
from gta_bench.records.tools import SERVER_SEPARATOR, ToolSpec
from gta_bench.redaction import current_redactor
from gta_bench.serving.server_tools import make_spec, read_result
from gta_bench.tape.source import TapeUnit, record_reply, tape_call
from gta_bench.tape.storage import SESSION, Tape

ENOUGH_SECONDS = 5.0
CHUNK = 1 << 16
PAUSE = 0.2  # seconds without a word after which calls are recorded
MOST_WAITING = 10_000
STDIN, STDOUT = 0, 1


class Recorded(NamedTuple):
    """How a recording ended: the server's exit status, and the calls on the tape and off it."""

    status: int
    calls: int
    unlisted: int


class _Passed(NamedTuple):
    """Bytes that passed the proxy; none are the end of the recording."""

    sender: Literal["client", "server"]
    data: bytes


def record_server(command: Sequence[str], name: str, tape: Tape) -> Recorded:
    """Run the server for the client on standard input and output, and record its calls.

    The server runs as its client would start it, without a cell.
    """
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as exc:
        raise EnvironmentProblem(f"{command[0]!r} cannot be started: {exc.strerror}.") from exc
    passed: queue.SimpleQueue[_Passed] = queue.SimpleQueue()
    recorder = _Recorder(name, tape)
    assert server.stdin is not None and server.stdout is not None
    # It may wait for words that never come when the server has ended.
    asking = threading.Thread(target=_ask, args=(server.stdin, passed), daemon=True)
    keeping = threading.Thread(target=recorder.run, args=(passed,))
    asking.start()
    keeping.start()
    try:
        _pass_on("server", server.stdout.fileno(), STDOUT, passed)
        try:
            status = server.wait(ENOUGH_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            status = server.wait()
    finally:
        passed.put(_Passed("server", b""))
        keeping.join()
    return Recorded(status, recorder.calls, len(recorder.unlisted))


def _ask(server: IO[bytes], passed: "queue.SimpleQueue[_Passed]") -> None:
    """Pass on what the client sends, then close the server's input."""
    _pass_on("client", STDIN, server.fileno(), passed)
    server.close()


def _pass_on(
    sender: Literal["client", "server"],
    source: int,
    target: int,
    passed: "queue.SimpleQueue[_Passed]",
) -> None:
    """Pass everything on until the source or the target is closed."""
    with suppress(BrokenPipeError):
        while data := os.read(source, CHUNK):
            passed.put(_Passed(sender, data))
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(target, rest) :]


def _wait_for_pauses(passed: "queue.SimpleQueue[_Passed]") -> Iterator[_Passed]:
    """Yield what passed until the end, in pauses between calls or when there is much of it.

    Threads take turns: one that records makes those wait that pass on.
    """
    waiting: list[_Passed] = []
    while True:
        try:
            one = passed.get(timeout=PAUSE if waiting else None)
        except queue.Empty:
            one = None
        if one is not None and one.data:
            waiting.append(one)
            if len(waiting) < MOST_WAITING:
                continue
        yield from waiting
        waiting.clear()
        if one is not None and not one.data:
            return


class _Recorder:
    """Reads requests and replies from the lines, and writes calls to the tape."""

    def __init__(self, name: str, tape: Tape) -> None:
        self._name = name
        self._tape = tape
        self._asked: dict[str, tuple[str, dict[str, Any]]] = {}
        self._pages: list[types.Tool] = []
        self._specs: dict[str, ToolSpec] = {}
        self._digest = ""
        self._redactor = current_redactor()
        # A client starts its servers again for every session, and a new one has no state.
        self._unit = TapeUnit(SESSION, SESSION, tape.last_epoch() + 1)
        self._numbers: Counter[str] = Counter()
        self.calls = 0
        self.unlisted: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def run(self, passed: "queue.SimpleQueue[_Passed]") -> None:
        """Record until the end."""
        with tempfile.TemporaryDirectory(prefix="gta-proxy-") as folder:
            asyncio.run(self._record(passed, Workspace.create(Path(folder), {})))

    async def _record(self, passed: "queue.SimpleQueue[_Passed]", workspace: Workspace) -> None:
        unfinished = {"client": b"", "server": b""}
        for one in _wait_for_pauses(passed):
            *lines, unfinished[one.sender] = (unfinished[one.sender] + one.data).split(b"\n")
            for message in (message for line in lines for message in _read_messages(line)):
                await self._note(one.sender, message, workspace)

    async def _note(self, sender: str, message: dict[str, Any], workspace: Workspace) -> None:
        key = json.dumps(message.get("id"))
        if sender == "client":
            if "method" in message and "id" in message:
                params = message.get("params")
                self._asked[key] = message["method"], params if isinstance(params, dict) else {}
            return
        if "method" in message or key not in self._asked:
            return
        method, params = self._asked.pop(key)
        if method == "tools/list":
            await self._list(params, message.get("result"), workspace)
        elif method == "tools/call":
            await self._keep(params, message, workspace)

    async def _list(self, params: dict[str, Any], result: Any, workspace: Workspace) -> None:
        """Note a page of tools; with the last page, the tape gets the definitions."""
        try:
            page = types.ListToolsResult.model_validate(result)
        except ValidationError:
            return
        self._pages = [*(self._pages if params.get("cursor") else ()), *page.tools]
        if page.next_cursor is not None:
            return
        self._specs = {spec.name: spec for spec in map(self._make_spec, self._pages)}
        self._digest = next((pin.digest for pin in pin_servers(self._specs.values()).values()), "")
        self._tape.offer(self._specs.values())
        waiting, self.unlisted = self.unlisted, []
        for earlier in waiting:
            await self._keep(*earlier, workspace)

    def _make_spec(self, tool: types.Tool) -> ToolSpec:
        return make_spec(self._name, tool)

    async def _keep(
        self, params: dict[str, Any], message: dict[str, Any], workspace: Workspace
    ) -> None:
        """Write a call and its reply; a call before the first list of tools waits for the list."""
        name = f"{self._name}{SERVER_SEPARATOR}{params.get('name')}"
        if name not in self._specs:
            self.unlisted.append((params, message))
            return
        arguments = params.get("arguments") or {}
        call = tape_call(self._unit, name, arguments, self._specs[name], workspace, self._redactor)
        call = call.model_copy(update={"server": self._digest})
        reply = await record_reply(
            _Replied(message), workspace, name, arguments, tape=self._tape, redactor=self._redactor
        )
        for file in workspace.outputs().files:
            (workspace.root / file.path).unlink()
        self._numbers[key := call.model_dump_json()] += 1
        epoch, number = self._unit.epoch, self._numbers[key]
        self._tape.keep(CallLine(call=call, epoch=epoch, number=number, reply=reply))
        self.calls += 1


class _Replied:
    """A source with the one reply that a server has sent."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return no tools."""
        return {}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Return the reply as `ServerTools` does."""
        error = self._message.get("error")
        if isinstance(error, dict):
            raise ToolError(f"{name}: {error.get('message')}")
        try:
            found = types.CallToolResult.model_validate(self._message.get("result"))
        except ValidationError as exc:
            raise ToolError(f"{name} sent a result that cannot be read.") from exc
        parts = read_result(found, workspace, name)
        return ToolResult(parts=parts, tool=name, tool_version="", backend="tool server")


def _read_messages(text: bytes) -> list[dict[str, Any]]:
    """Return the messages of a line; a line that is no JSON has none, and a batch has several."""
    try:
        read = json.loads(text)
    except ValueError:
        return []
    return [one for one in (read if isinstance(read, list) else [read]) if isinstance(one, dict)]
