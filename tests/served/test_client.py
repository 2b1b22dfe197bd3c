import asyncio
from pathlib import Path
from typing import Any

import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem, ToolError, ToolServerFailure, ToolUnavailable
from gta_bench.records.calls import ToolResult
from gta_bench.serving.client import Exchange
from tests.file_server import serving
from tests.served.support import (
    HASTY,
    PNG,
    Served,
    SmallTools,
    connected,
    contents,
    tool_server,
    workspace_of,
)

PROTOCOLS = ["http", "mcp"]
pytestmark = pytest.mark.usefixtures("loopback")


def call(
    served: Served, protocol: str, workspace: Workspace, name: str, **given: Any
) -> ToolResult:
    async def go() -> ToolResult:
        source = await connected(served, protocol)
        try:
            return await source.call(workspace, name, given)
        finally:
            await source.release(workspace)
            await source.aclose()

    return asyncio.run(go())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_remote_result_is_the_local_one_and_so_are_the_files(
    small: Served, tmp_path: Path, protocol: str
) -> None:
    files = {"inputs/a.png": PNG}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Echo", {"text": "grüße 茶"}),
        ("Draw", {}),
        ("Write", {"size": 5 << 20}),
    ]
    for name, given in calls:
        with workspace_of(tmp_path, files) as here, workspace_of(tmp_path, files) as there:
            local = asyncio.run(SmallTools().call(here, name, given))
            remote = call(small, protocol, there, name, **given)
            assert remote == local
            assert contents(there) == contents(here)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_inputs_go_to_the_server_once_and_are_read_there(
    small: Served, tmp_path: Path, protocol: str
) -> None:
    large = bytes(range(256)) * (5 << 12)
    with workspace_of(tmp_path, {"inputs/large.png": large}) as space:
        first = call(small, protocol, space, "Size", image="inputs/large.png")
        again = call(small, protocol, space, "Size", image="large.png")
    assert first.text.startswith(f"{5 << 20} ")
    assert first.parts == again.parts


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_tools_own_failures_come_back_as_they_are(
    small: Served, tmp_path: Path, protocol: str
) -> None:
    with workspace_of(tmp_path, {}) as space:
        with pytest.raises(ToolError, match="Refuse: 'x' is not wanted"):
            call(small, protocol, space, "Refuse", text="x")
        with pytest.raises(ToolUnavailable) as caught:
            call(small, protocol, space, "Missing")
        assert (caught.value.reason, caught.value.fix) == ("A key is missing.", "export KEY=…")
        for name in ("Nothing", "../../v1/tools", "Echo/../Crash", "", "a b?c#d", "%2e%2e"):
            with pytest.raises(ToolError, match="Unknown tool"):
                call(small, protocol, space, name)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_too_many_files_are_a_failure_that_the_agent_can_act_on(
    small: Served, tmp_path: Path, protocol: str
) -> None:
    with workspace_of(tmp_path, {}) as space:
        for number in range(space.quota.files + 1):
            (space.root / "outputs" / f"{number}.txt").write_text("x", encoding="utf-8")
        with pytest.raises(ToolError, match=r"rejected .* no more are allowed"):
            call(small, protocol, space, "Echo", text="x")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_bug_on_the_server_fails_the_sample_and_reaches_no_agent(
    small: Served, tmp_path: Path, protocol: str
) -> None:
    with workspace_of(tmp_path, {}) as space, pytest.raises(ToolServerFailure, match="tool server"):
        call(small, protocol, space, "Crash")


def test_a_proxy_whose_server_ended_under_a_request_is_asked_again() -> None:
    async def ask() -> bytes:
        exchange = Exchange.to(proxy.url, None, HASTY)
        try:
            return (await exchange.send("GET", "/tools")).content
        finally:
            await exchange.client.aclose()

    with serving() as proxy:
        proxy.files["/tools"] = b"here again"
        proxy.statuses = [500, 503]
        assert asyncio.run(ask()) == b"here again"
        assert len(proxy.requests) == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_was_restarted_gets_the_files_again(tmp_path: Path, protocol: str) -> None:
    """Its workspaces are gone, but the client has all that is needed to make them again."""

    async def go(space: Workspace) -> list[str]:
        with tool_server(SmallTools(), tmp_path / "first") as served:
            source = await connected(served, protocol)
            await source.call(space, "Draw", {})
            port = served.port
        with tool_server(SmallTools(), tmp_path / "second", port=port):
            said = [(await source.call(space, "Size", {"image": name})).text for name in FILES]
            await source.call(space, "Draw", {})
            await source.release(space)
            await source.aclose()
        return said

    FILES = ["inputs/a.png", "outputs/plot.png"]
    with workspace_of(tmp_path, {"inputs/a.png": b"input"}) as space:
        said = asyncio.run(go(space))
        assert [text.split()[0] for text in said] == ["5", str(len(PNG))]
        assert "outputs/plot-2.png" in contents(space)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_is_gone_is_a_failure_of_infrastructure(
    tmp_path: Path, protocol: str
) -> None:
    async def go(space: Workspace) -> None:
        with tool_server(SmallTools(), tmp_path / "first") as served:
            source = await connected(served, protocol)
            await source.call(space, "Draw", {})
        try:
            with pytest.raises(ToolServerFailure, match="does not answer"):
                await source.call(space, "Draw", {})
        finally:
            await source.release(space)
            await source.aclose()

    with workspace_of(tmp_path, {}) as space:
        asyncio.run(go(space))


def test_a_call_that_is_asked_for_twice_happens_once(small: Served) -> None:
    space = small.open()
    key = {"idempotency-key": "one-and-the-same"}
    replies = [small.call(space, "Draw", {}, **key).json() for _ in range(2)]
    assert replies[0] == replies[1]
    other = small.call(space, "Draw", {}, **{"idempotency-key": "another"}).json()
    assert other["files"][0]["path"] == "outputs/plot-2.png"


def test_a_wrong_or_missing_token_is_said_at_once(small: Served) -> None:
    with pytest.raises(EnvironmentProblem, match=r"rejected the token\. Set GTA_TOOLS_TOKEN"):
        asyncio.run(connected(small, token="wrong-token-wrong-token"))
    with pytest.raises(EnvironmentProblem, match="GTA_TOOLS_TOKEN is not set"):
        asyncio.run(connected(small, token=None))
