"""The MCP face as foreign clients meet it."""

import asyncio
import base64
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import BlobResourceContents, ImageContent, ResourceLink, TextContent

from gta_bench.demo import ATOMIC
from gta_bench.serving.wire import OpenedWorkspace
from tests.needs import needs
from tests.served.support import PNG, Served

pytestmark = pytest.mark.usefixtures("loopback")
INSPECTOR = "@modelcontextprotocol/inspector@0.18.0"
LARGE = bytes(range(256)) * (5 << 12)


@asynccontextmanager
async def official(
    served: Served, space: OpenedWorkspace, mode: str = "auto"
) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {space.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(
            streamable_http_client(f"{served.url}{space.mcp}", http_client=http), mode=mode
        ) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_lists_calls_and_fetches(small: Served, mode: str) -> None:
    space = small.open({"inputs/large.png": LARGE})

    async def go() -> None:
        async with official(small, space, mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools)[:2] == ["Echo", "Write"]
            assert tools["Size"].input_schema["required"] == ["image"]
            said = await client.call_tool("Echo", {"text": "grüße 茶"})
            assert said.content == [TextContent(text="grüße 茶")]
            assert not said.is_error
            read = await client.call_tool("Size", {"image": "inputs/large.png"})
            assert read.content[0].text.startswith(f"{len(LARGE)} ")  # type: ignore[union-attr]

            drawn = await client.call_tool("Draw", {})
            text, link, picture = drawn.content
            assert text == TextContent(text="[image](outputs/plot.png)")
            assert isinstance(link, ResourceLink)
            assert (link.name, link.mime_type, link.size) == ("outputs/plot.png", "image/png", 72)
            assert isinstance(picture, ImageContent)
            assert base64.b64decode(picture.data) == PNG

            written = await client.call_tool("Write", {"size": len(LARGE)})
            assert [block.type for block in written.content] == ["text", "resource_link"]
            uri = written.content[1].uri  # type: ignore[union-attr]
            assert uri == f"artefact://{hashlib.sha256(LARGE).hexdigest()}"
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, BlobResourceContents)
            assert base64.b64decode(content.blob) == LARGE
            names = {entry.name for entry in (await client.list_resources()).resources}
            assert {"outputs/data.bin", "outputs/plot.png"} <= names

    asyncio.run(go())


def test_a_text_of_five_megabytes_goes_there_and_back(small: Served) -> None:
    space = small.open()
    text = "x" * 5_000_000

    async def go() -> None:
        async with official(small, space) as client:
            said = await client.call_tool("Echo", {"text": text})
            assert said.content == [TextContent(text=text)]

    asyncio.run(go())


def test_failures_are_errors_with_the_tools_words(small: Served) -> None:
    space = small.open()

    async def go() -> None:
        async with official(small, space) as client:
            refused = await client.call_tool("Refuse", {"text": "x"})
            assert refused.is_error
            assert refused.content == [TextContent(text="Refuse: 'x' is not wanted.")]
            missing = await client.call_tool("Missing", {})
            assert missing.content == [TextContent(text="A key is missing. export KEY=…")]
            unknown = await client.call_tool("Nothing", {})
            assert unknown.is_error
            with pytest.raises(MCPError, match="no such file"):
                await client.read_resource("artefact://" + "0" * 64)
            with pytest.raises(MCPError):
                await client.call_tool("Crash", {})

    asyncio.run(go())


def test_stdio_serves_one_workspace(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    shutil.copy(ATOMIC / "image" / "receipt.png", tmp_path / "inputs")
    arguments = ["-m", "gta_bench.cli", "tools", "serve", "--stdio", "--workspace", str(tmp_path)]
    command = StdioServerParameters(
        command=sys.executable, args=arguments, env={"PYTHONPATH": ":".join(sys.path)}
    )

    async def go() -> None:
        async with Client(command) as client:
            assert len((await client.list_tools()).tools) == 38
            said = await client.call_tool("Calculator", {"expression": "6*7"})
            assert said.content == [TextContent(text="42")]
            box = {"image": "inputs/receipt.png", "bbox": "(10, 10, 90, 60)"}
            drawn = await client.call_tool("DrawBox", box)
            assert drawn.content[0] == TextContent(text="[image](outputs/receipt-box.png)")

    asyncio.run(go())
    assert (tmp_path / "outputs" / "receipt-box.png").is_file()


@pytest.mark.measure
@needs("npm")
def test_an_independent_client_lists_calls_and_fetches(small: Served, tmp_path: Path) -> None:
    """The Inspector of the protocol's makers, written in TypeScript with another SDK."""
    space = small.open({"inputs/large.png": LARGE})
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run([*install, INSPECTOR], cwd=tmp_path, check=True, capture_output=True)

    def inspect(method: str, *more: str) -> Any:
        command = ["node_modules/.bin/mcp-inspector", "--cli", f"{small.url}{space.mcp}"]
        command += ["--transport", "http", "--header", f"authorization: Bearer {space.token}"]
        command += ["--method", method, *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def call(name: str, **given: str) -> Any:
        arguments = [f"{key}={value}" for key, value in given.items()]
        more = ["--tool-arg", *arguments] if arguments else []
        return inspect("tools/call", "--tool-name", name, *more)

    assert [tool["name"] for tool in inspect("tools/list")["tools"]][:2] == ["Echo", "Write"]
    assert call("Echo", text="hello")["content"] == [{"type": "text", "text": "hello"}]
    drawn = call("Draw")["content"]
    assert [block["type"] for block in drawn] == ["text", "resource_link", "image"]
    assert base64.b64decode(drawn[2]["data"]) == PNG
    read = call("Size", image="inputs/large.png")["content"][0]["text"]
    assert read == f"{len(LARGE)} {hashlib.sha256(LARGE).hexdigest()}"
    refused = call("Refuse", text="this")
    assert refused["isError"]
    assert refused["content"][0]["text"] == "Refuse: 'this' is not wanted."
    link = call("Write", size=str(len(LARGE)))["content"][1]
    assert link["type"] == "resource_link"
    fetched = inspect("resources/read", "--uri", link["uri"])["contents"][0]["blob"]
    assert base64.b64decode(fetched) == LARGE
