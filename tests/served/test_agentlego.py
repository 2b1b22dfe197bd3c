import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gta_bench.errors import EnvironmentProblem, ToolError, ToolServerFailure
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.serving.choice import ServerAddress
from gta_bench.serving.client import connect
from tests.chat_server import chat_server
from tests.served.agentlego_server import PICTURE, AgentLegoServer, agentlego_server
from tests.served.support import HASTY, PNG, contents, workspace_of

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def lego(loopback: None) -> Iterator[AgentLegoServer]:
    with agentlego_server() as server:
        yield server


def call(lego: AgentLegoServer, folder: Path, name: str, **given: Any) -> ToolResult:
    return calls(lego, folder, name, **given)[0]


def calls(
    lego: AgentLegoServer, folder: Path, name: str, **given: Any
) -> tuple[ToolResult, dict[str, bytes]]:
    async def go() -> ToolResult:
        source = await connect(ServerAddress("agentlego", lego.url), None, HASTY)
        try:
            return await source.call(space, name, given)
        finally:
            await source.release(space)
            await source.aclose()

    with workspace_of(folder, {"inputs/a.png": PNG}) as space:
        return asyncio.run(go()), contents(space)


def specs(lego: AgentLegoServer) -> dict[str, ToolSpec]:
    async def go() -> dict[str, ToolSpec]:
        source = await connect(ServerAddress("agentlego", lego.url), None, HASTY)
        await source.aclose()
        return dict(source.specs())

    return asyncio.run(go())


def test_tools_are_read_from_the_openapi_page(lego: AgentLegoServer) -> None:
    found = specs(lego)
    assert list(found)[:2] == ["Calculator", "Search"]
    box = found["DrawBox"]
    assert box.description == "What DrawBox does."
    assert [(entry.name, entry.type) for entry in box.inputs] == [
        ("image", "image"),
        ("bbox", "text"),
    ]
    assert [entry.type for entry in box.outputs] == ["image"]
    count = found["Search"].input("k")
    assert count is not None
    assert (count.type, count.optional, count.default) == ("int", True, 10)
    assert [entry.type for entry in found["Both"].outputs] == ["text", "image"]
    assert found["Archive"].outputs[0].type == "file"


def test_texts_go_as_a_form_and_come_back(lego: AgentLegoServer, tmp_path: Path) -> None:
    result = call(lego, tmp_path, "Calculator", expression="6*7")
    assert result.text == "42"
    assert result.backend == f"AgentLego at 127.0.0.1:{lego.server_address[1]}"
    assert lego.received == [{"expression": "6*7"}]
    assert call(lego, tmp_path, "Search", query="x", k=3).text == "3 results"


def test_files_go_by_content_and_come_back_as_outputs(
    lego: AgentLegoServer, tmp_path: Path
) -> None:
    assert call(lego, tmp_path, "ImageDescription", image="a.png").text == f"{len(PNG)} bytes"
    result, files = calls(lego, tmp_path, "DrawBox", image="inputs/a.png", bbox="(1, 1, 2, 2)")
    assert lego.received[-1] == {"image": PNG, "bbox": "(1, 1, 2, 2)"}
    assert result.text == "[image](outputs/drawbox.png)"
    assert files["outputs/drawbox.png"] == PICTURE
    assert call(lego, tmp_path, "Both", text="x").text == "words\n[image](outputs/both.png)"
    assert call(lego, tmp_path, "Archive").text == "[file](outputs/archive.bin)"


@pytest.mark.parametrize("status", [400, 422, 408, 500])
def test_what_a_tool_says_is_told_to_the_agent(
    lego: AgentLegoServer, tmp_path: Path, status: int
) -> None:
    lego.statuses = [status]
    with pytest.raises(ToolError, match=rf"Calculator: ValueError\('not like this'\).*{status}"):
        call(lego, tmp_path, "Calculator", expression="x")
    with pytest.raises(ToolError, match="There is no file"):
        call(lego, tmp_path, "ImageDescription", image="none.png")
    with pytest.raises(ToolError, match="Unknown tool 'Nothing'"):
        call(lego, tmp_path, "Nothing")


def test_a_busy_server_is_asked_again_and_then_given_up(
    lego: AgentLegoServer, tmp_path: Path
) -> None:
    lego.statuses = [503, 502]
    assert call(lego, tmp_path, "Calculator", expression="6*7").text == "42"
    lego.statuses = [503] * 3
    with pytest.raises(ToolServerFailure, match=r"does not answer \(status 503\)"):
        call(lego, tmp_path, "Calculator", expression="6*7")


def test_another_server_is_not_taken_for_one(loopback: None, small: Any) -> None:
    with chat_server() as other:
        for protocol in ("agentlego", "http"):
            server = ServerAddress(protocol, other.url)
            with pytest.raises((EnvironmentProblem, ToolServerFailure)):
                asyncio.run(connect(server, "a-token-a-token-a-token", HASTY))
