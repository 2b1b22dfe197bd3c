"""Tool servers that hang, flood, die, lie and attack: one line each, nothing outside touched."""

import socket
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gta_bench.confine.limits import MIB
from gta_bench.confine.service import ServiceLimits, ServicePlan
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError, ToolServerFailure
from gta_bench.records.tool_servers import describe_drift, pin_servers
from gta_bench.serving import tool_servers
from gta_bench.serving.server_tools import ServerTools
from tests.needs import needs
from tests.served.foreign import bad, call_once, use

pytestmark = needs("bwrap")


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are reached within a second."""
    small = ServiceLimits(
        memory_bytes=256 * MIB,
        disk_bytes=16 * MIB,
        processes=32,
        line_bytes=4 * MIB,
        flood_bytes=8 * MIB,
    )
    monkeypatch.setattr(tool_servers, "ServicePlan", partial(ServicePlan, limits=small))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dies at once", "cannot be used .*it ended with status 1 and said 'no license'"),
        ("is silent", "did not start within 2 seconds"),
        ("has two of a name", "lists two tools with the same name"),
        ("has a strange name", r"lists a tool with the name 'rm -rf /\\n'"),
        ("lists forever", "lists tools on more than 100 pages"),
        ("lists nonsense", "cannot list its tools"),
    ],
)
def test_a_server_that_cannot_be_used_is_one_line(tmp_path: Path, how: str, message: str) -> None:
    with pytest.raises(ToolServerFailure, match=message) as caught:
        call_once(bad(how, start_seconds=2.0), tmp_path, "work")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("Correct [tool_servers.own] in gta.toml, or the server.")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dies", "is gone: it ended with status 3 and said 'out of ideas'"),
        ("floods a line", "it printed a line of more than 4194304 bytes"),
        ("floods messages", "it printed more than 8388608 bytes without being asked"),
        ("fills memory", "it used more than 268435456 bytes of memory"),
        ("fills the disk", "is gone: it ended with status|it wrote more than"),
        ("forks", "is gone|it ran more than"),
    ],
)
def test_a_server_that_breaks_off_fails_the_unit_in_one_line(
    tmp_path: Path, how: str, message: str
) -> None:
    with pytest.raises(ToolServerFailure, match=message) as caught:
        call_once(bad(how, call_seconds=20.0), tmp_path, "work")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("hangs", "own__work did not answer within 1 seconds"),
        ("lies about its results", "own__work sent a result that cannot be read"),
        ("sends nonsense", "own__work sent a result that cannot be read"),
        ("says too much", "The result of own__work has 2,000,000 characters"),
    ],
)
def test_a_bad_answer_is_the_agents_and_the_run_goes_on(
    tmp_path: Path, how: str, message: str
) -> None:
    start = time.monotonic()
    with pytest.raises(ToolError, match=message):
        call_once(bad(how, call_seconds=1.0), tmp_path, "work")
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("code", ["-32000", "-32001", "-32050"])
def test_an_error_with_a_code_of_the_sdk_is_the_agents(tmp_path: Path, code: str) -> None:
    with pytest.raises(ToolError, match="own__work: not today"):
        call_once(bad("refuses", code), tmp_path, "work")


def test_words_between_the_messages_do_no_harm(tmp_path: Path) -> None:
    assert call_once(bad("chatters"), tmp_path, "work").text == "done"


def test_a_server_whose_schema_is_another_one_each_time_is_noticed(tmp_path: Path) -> None:
    async def pin(source: ServerTools, _: Workspace) -> Any:
        return pin_servers(source.specs().values())

    one, two = (use(bad("lies about its schema"), tmp_path / name, pin) for name in "ab")
    assert describe_drift(one, two) == ["own__work has another schema"]


@pytest.mark.usefixtures("loopback")
def test_nothing_outside_is_written_or_reached(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    planted = outside / "planted"
    planted.write_text("before")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        server = bad("attacks", str(planted), str(port), files="write")
        found = call_once(server, tmp_path / "space", "work")
    assert set(found.text.split()) == {"no"}
    assert planted.read_text() == "before"
    assert [*outside.iterdir()] == [planted]
    assert [*(tmp_path / "space/outputs").iterdir()] == []


def test_nothing_of_a_server_is_left_behind(tmp_path: Path) -> None:
    mark = f"marked-{tmp_path.name}"
    with pytest.raises(ToolError):
        call_once(bad("hangs", mark, call_seconds=0.5), tmp_path, "work")
    running = [
        folder.name
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and mark.encode() in _command_line(folder)
    ]
    assert running == []


def _command_line(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes()
    except OSError:
        return b""
