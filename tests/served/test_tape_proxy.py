"""`gta tape record`: a proxy between any client and any server, and runs from what it recorded."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ImageContent, TextContent

from gta_bench.records.tape import DoneReply, ErrorReply
from gta_bench.tape.storage import TAPE, Tape
from tests.conftest import REPOSITORY
from tests.served.foreign import BAD, OWN
from tests.served.test_server_runs import AGENT, here, read, run, write_tasks

KEY = "sk-live-7f3a9b2c5d"
__all__ = ["here"]


def proxy(tape: Path, *command: str, name: str = "own") -> StdioServerParameters:
    args = ["-m", "gta_bench", "tape", "record", "--out", str(tape), "--name", name, "--", *command]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "PROXIED_API_KEY": KEY}
    return StdioServerParameters(command=sys.executable, args=args, env=environment)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_sees_the_server_as_it_is_and_its_calls_are_recorded(
    tmp_path: Path, mode: str
) -> None:
    async def go() -> list[Any]:
        async with Client(proxy(tmp_path / "tape", sys.executable, str(OWN)), mode=mode) as client:
            cursor = None
            while True:
                page = await client.list_tools(cursor=cursor)
                if (cursor := page.next_cursor) is None:
                    break
            return [
                await client.call_tool("echo", {"text": f"my key is {KEY}"}),
                await client.call_tool("picture", {}),
                await client.call_tool("fail", {}),
                await client.call_tool("count", {}),
                await client.call_tool("count", {}),
            ]

    echo, picture, fail, *counts = asyncio.run(go())
    assert echo.content == [TextContent(text=f"my key is {KEY}")]
    assert isinstance(picture.content[0], ImageContent)
    assert fail.is_error
    with closing(Tape.open(tmp_path / "tape")) as tape:
        assert len(tape.specs) == 16
        lines = [*tape.first_calls()]
        said = [
            line.reply.parts[0].content if isinstance(line.reply, DoneReply) else line.reply
            for line in lines
        ]
        assert said == [
            "my key is [redacted:PROXIED_API_KEY]",
            "outputs/own__picture.png",
            ErrorReply(message="the disk is full"),
            counts[0].content[0].text,
        ]
        assert len(tape) == 5
        assert {len(line.call.server) for line in lines} == {32}
    assert KEY not in (tmp_path / "tape" / TAPE).read_text(encoding="utf-8")


def test_a_run_replays_what_the_proxy_recorded(here: Path) -> None:
    server = proxy(here / "tape", sys.executable, str(BAD), "counts", name="counter")
    asked = [
        {"id": 1, "method": "tools/call", "params": {"name": "work", "arguments": {}}},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": {"name": "work"}},
        {"id": 4, "method": "tools/call", "params": {"name": "unheard"}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    done = subprocess.run(
        [server.command, *server.args],
        input=f"not JSON\n{lines}",
        env=server.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1  # of the server, which reads nothing but JSON
    done = subprocess.run(
        [server.command, *server.args],
        input=lines,
        env=server.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            f"2 calls of counter in {here / 'tape'}.",
            "1 call not recorded: of tools that are not in the list that the client asked for.",
        ],
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2, 3, 4]
    write_tasks(here, (["counter__*"], [["counter__work", {}], ["counter__work", {}]]))
    run(here / "run", *AGENT, "--tape", "tape")
    (unit,) = read(here / "run")
    assert unit.answer == "1 2"
    assert {call.taped for call in unit.calls} == {"replayed"}


def test_a_program_that_is_missing_is_one_line(tmp_path: Path) -> None:
    server = proxy(tmp_path / "tape", "no-such-program")
    done = subprocess.run(
        [server.command, *server.args],
        env=server.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 3
    assert "'no-such-program' cannot be started: No such file or directory." in done.stderr
