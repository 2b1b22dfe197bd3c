"""A small MCP server with every kind of content, on standard input and output or on a port.

python own_server.py [--port PORT] [--token TOKEN] [--changed]
"""

import argparse
import asyncio
import base64
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8"
        "cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
# Keywords that a tool definition of ours cannot express.
SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
        "order": {"oneOf": [{"const": "new"}, {"const": "old"}]},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/filter"}},
    },
    "required": ["query"],
    "$defs": {"filter": {"type": "object", "properties": {"field": {"type": "string"}}}},
}
SUM = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
KINDS = (
    "picture",
    "sound",
    "link",
    "note",
    "blob",
    "mixed",
    "fail",
    "crash",
    "slow",
    "count",
    "env",
)


def list_tools(changed: bool) -> list[types.Tool]:
    plain = [types.Tool(name=name, input_schema=NOTHING) for name in KINDS]
    if changed:
        plain = [tool for tool in plain if tool.name != "count"]
        plain.append(types.Tool(name="fresh", input_schema=NOTHING))
    return [
        types.Tool(
            name="echo",
            description="Repeats other words." if changed else "Repeats a text.",
            input_schema=TEXT,
            annotations=types.ToolAnnotations(read_only_hint=True),
        ),
        types.Tool(name="write", description="Writes outputs/note.txt.", input_schema=TEXT),
        types.Tool(name="store", description="Adds a note to data/notes.db.", input_schema=TEXT),
        types.Tool(name="search", input_schema=NOTHING if changed else SEARCH),
        types.Tool(name="add", input_schema=NOTHING, output_schema=SUM),
        *plain,
    ]


class Content:
    """What the tools answer; `count` is a state."""

    def __init__(self) -> None:
        self.calls = 0

    def answer(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        self.calls += 1
        blocks: dict[str, list[types.ContentBlock]] = {
            "echo": [_text(str(arguments.get("text")))],
            "search": [_text(json.dumps(arguments, sort_keys=True))],
            "picture": [types.ImageContent(data=PNG, mime_type="image/png")],
            "sound": [types.AudioContent(data=WAV, mime_type="audio/wav")],
            "link": [
                types.ResourceLink(uri="file:///far/a.txt", name="a.txt", description="A far file")
            ],
            "note": [
                types.EmbeddedResource(
                    resource=types.TextResourceContents(uri="memo://1", text="remember")
                )
            ],
            "blob": [
                types.EmbeddedResource(
                    resource=types.BlobResourceContents(
                        uri="file:///x/data.bin", blob="AAEC", mime_type="application/octet-stream"
                    )
                )
            ],
            "mixed": [_text("before"), types.ImageContent(data=PNG, mime_type="image/png")],
            "count": [_text(str(self.calls))],
            "env": [_text(os.environ.get("OWN_KEY", "unset"))],
        }
        match name:
            case "fail":
                return types.CallToolResult(content=[_text("the disk is full")], is_error=True)
            case "crash":
                raise RuntimeError("a bug of the server")
            case "add":
                return types.CallToolResult(content=[], structured_content={"sum": 5})
            case "write":
                Path("outputs/note.txt").write_text(str(arguments["text"]), encoding="utf-8")
                return types.CallToolResult(content=[_text("written")])
            case "store":
                Path("data").mkdir(exist_ok=True)
                with closing(sqlite3.connect("data/notes.db")) as base, base:
                    base.execute("PRAGMA journal_mode = WAL")
                    base.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text)")
                    base.execute("INSERT INTO notes (text) VALUES (?)", (arguments["text"],))
                return types.CallToolResult(content=[_text("stored")])
        return types.CallToolResult(content=blocks[name])


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def make_server(*, changed: bool = False) -> Server[Any]:
    content, tools = Content(), list_tools(changed)

    async def on_list(_: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        # Two pages, because some clients read only the first one.
        if params is None or params.cursor is None:
            return types.ListToolsResult(tools=tools[:3], next_cursor="2")
        return types.ListToolsResult(tools=tools[3:])

    async def on_call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "slow":
            await asyncio.sleep(600)
        return content.answer(params.name, params.arguments or {})

    return Server("own", version="1.2", on_list_tools=on_list, on_call_tool=on_call)


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--changed", action="store_true")
    asyncio.run(serve_stdio(make_server(changed=options.parse_args().changed)))
