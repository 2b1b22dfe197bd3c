"""What a measured system finds in the replies of its tool server."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import JsonValue

from gta_bench.agents.calling import RecordedTools, TaskWork
from gta_bench.confine.workspace import Workspace
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import ToolSpec
from gta_bench.redaction import Redactor
from gta_bench.serving.mcp_face import CONNECTIONS, serve_unit
from gta_bench.serving.tokens import new_token
from gta_bench.tape.controls import CorruptReplies, Dice, Faults, OtherReplies
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.source import ToolSource

pytestmark = pytest.mark.usefixtures("loopback")
SPEC = ToolSpec.model_validate(
    {
        "name": "Count",
        "description": "Count.",
        "inputs": [{"name": "text", "type": "text"}],
        "outputs": [{"type": "text"}],
    }
)
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
# Words that would say that a reply was recorded, spoiled or made up, and by what it was made.
TELLING = ("taped", "tape", "recorded", "control", "fault", "corrupt", "backend", "my-backend")


class Counting:
    """A tool that names what ran, and fails where it is asked to."""

    def specs(self) -> Mapping[str, ToolSpec]:
        return {SPEC.name: SPEC}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        if arguments["text"] == "file":
            workspace.write("a.txt", b"text")
        return ToolResult(
            parts=(ReplyPart(type="text", content="There are 12 of them."),),
            tool=name,
            tool_version="1",
            backend="my-backend 1",
            seconds=3.0,
        )


def wrapped(kind: str, folder: Path) -> ToolSource:
    dice, source = Dice(0, "0", 1), Counting()
    if kind == "corrupted":
        return CorruptReplies(source, dice, OtherReplies([]))
    if kind == "fault":
        return Faults(source, dice, 1.0)
    if kind == "plain":
        return source
    tape = Tape.record(folder / "tape", dataset="atomic", origin="live")
    tape.offer([SPEC])
    unit, live = TapeUnit("atomic", "0", 1), source if kind == "record" else None
    return TapedTools(tape, unit, "record" if live else "replay", Redactor({}), live)


@pytest.mark.parametrize("text", ["words", "file"])
@pytest.mark.parametrize("kind", ["plain", "corrupted", "fault", "record", "missing"])
def test_a_measured_system_cannot_tell_a_control_or_a_tape(
    kind: str, text: str, tmp_path: Path
) -> None:
    """`_meta` had `control`, `taped`, `backend` and `seconds`."""
    work = TaskWork([])
    tools = RecordedTools(wrapped(kind, tmp_path), [SPEC], work)
    workspace = Workspace.create(tmp_path / "files", {})
    said = asyncio.run(_replies(tools, workspace, tmp_path / "s", {"text": text}))
    assert not any(word in said.lower() for word in TELLING), said
    for reply in map(json.loads, said.splitlines()):
        assert _metas(reply) <= {"io.modelcontextprotocol/serverInfo"}
    (call,) = work.calls
    known = {"corrupted": call.control, "fault": call.control, "missing": call.taped}
    assert known.get(kind, kind) == kind, "our own record still has it"


@pytest.mark.parametrize("begun", [False, True])
def test_a_harness_has_only_so_many_connections(begun: bool, tmp_path: Path) -> None:
    """Each of the thousands that one opened was a file of the process that runs all units."""
    workspace, token, path = Workspace.create(tmp_path / "files", {}), new_token(), tmp_path / "s"
    head = "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n"
    head += f"Authorization: Bearer {token}\r\n\r\n"

    async def held() -> int:
        async with serve_unit(Counting(), workspace, token, path):
            lines = [await asyncio.open_unix_connection(path) for _ in range(5 * CONNECTIONS)]
            for _, writer in lines:
                writer.write(head.encode() if begun else b"")
            await asyncio.sleep(0.5)
            number = sum(not reader.at_eof() and not reader.exception() for reader, _ in lines)
            for _, writer in lines:
                writer.close()
        return number

    assert 0 < asyncio.run(held()) <= CONNECTIONS


async def _replies(
    tools: RecordedTools, workspace: Workspace, socket: Path, arguments: dict[str, JsonValue]
) -> str:
    """All that the server says to a list and to a call, headers too, a line a body."""
    token = new_token()
    headers = {**HEADERS, "Authorization": f"Bearer {token}"}
    transport = httpx2.AsyncHTTPTransport(uds=str(socket))
    bodies = []
    async with (
        serve_unit(tools, workspace, token, socket),
        httpx2.AsyncClient(transport=transport, headers=headers) as client,
    ):
        for method, params in (
            ("tools/list", {}),
            ("tools/call", {"name": SPEC.name, "arguments": arguments}),
        ):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            reply = await client.post("http://127.0.0.1/mcp", json=body)
            assert reply.status_code == 200, reply.text
            told = {"headers": dict(reply.headers), "body": reply.json()}
            bodies.append(json.dumps(told))
    return "\n".join(bodies)


def _metas(value: Any) -> set[str]:
    """The names in every `_meta` of a reply."""
    if isinstance(value, dict):
        own = set(value.get("_meta") or {})
        return own.union(*map(_metas, value.values()))
    return set().union(*map(_metas, value)) if isinstance(value, list) else set()
