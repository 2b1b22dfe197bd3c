"""The same tools by MCP: stateless HTTP with JSON replies, and stdio.

What an agent sees is the text of a result and small pictures. Files are resource links; their
bytes are fetched by digest, over HTTP or as resources. Our own client finds the whole reply in
`_meta`. A system that is measured gets none: the reply names backends, tapes and controls.
"""

import asyncio
import base64
import mimetypes
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, cast

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from gta_bench.confine.workspace import IMAGE_KINDS, Workspace
from gta_bench.datasets.files import KINDS
from gta_bench.records.calls import ToolResult
from gta_bench.records.tools import ToolSpec
from gta_bench.serving.calling import Caller
from gta_bench.serving.gate import SPACE, App
from gta_bench.serving.limits import Busy, ServerLimits
from gta_bench.serving.schemas import input_schema
from gta_bench.serving.spaces import Space
from gta_bench.serving.tokens import TokenHolder, new_token
from gta_bench.serving.wire import (
    FAILURE_META,
    KEY_META,
    REPLY_META,
    SPEC_META,
    CallFailure,
    CallReply,
    FileRef,
)
from gta_bench.tools.source import ToolSource

Context = ServerRequestContext[Any, Any]
INLINE_BYTES = 256 * 1024  # of a picture; larger ones are fetched by whoever wants them
SCHEME = "artefact://"
BUSY_CODE = -32029


class McpFace:
    """An MCP server whose workspace is the request's, or a fixed one for stdio."""

    def __init__(self, caller: Caller, *, space: Space | None = None, blind: bool = False) -> None:
        """With `blind` nothing is in `_meta`: whoever calls is measured."""
        self._caller = caller
        self._space = space
        self._blind = blind
        self._tools = [_tool(spec) for spec in caller.specs.values()]
        if blind:
            self._tools = [tool.model_copy(update={"meta": None}) for tool in self._tools]
        schemas = {tool.name: tool.input_schema for tool in self._tools}
        self._server: Server[Any] = Server(
            "gta-bench",
            version=version("gta-bench"),
            instructions=(
                "Tools of the GTA benchmark. Files are named by paths of the task's workspace: "
                "`inputs/NAME` and `outputs/NAME`."
            ),
            get_tool_input_schema=schemas.get,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_read_resource=self._read,
        )
        self._manager: StreamableHTTPSessionManager | None = None

    def over_http(self, body_bytes: int) -> App:
        """The ASGI application; `running` must surround its use."""
        self._manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=body_bytes
        )
        return _Endpoint(self._manager)

    def running(self) -> AbstractAsyncContextManager[None]:
        """What keeps the HTTP face alive."""
        assert self._manager is not None, "over_http comes first"
        return self._manager.run()

    async def over_stdio(self) -> None:
        """Serve one client on this process's standard input and output until it leaves."""
        async with stdio_server() as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())

    def _of(self, context: Context) -> Space:
        if self._space is not None:
            return self._space
        assert context.request is not None, "HTTP requests are attached"
        return cast(Space, context.request.scope[SPACE])

    async def _list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        space, arguments = self._of(context), params.arguments or {}
        if not _is_text(arguments):
            raise MCPError(types.INVALID_PARAMS, "The arguments hold half characters.")
        key = (context.meta or {}).get(KEY_META)
        try:
            outcome = await self._caller.call(
                space, params.name, arguments, key=key if isinstance(key, str) else None
            )
        except Busy as exc:
            raise MCPError(BUSY_CODE, str(exc)) from exc
        if isinstance(outcome, CallFailure):
            reply = _failed(outcome)
        elif outcome.files:
            reply = await asyncio.to_thread(_done, outcome, space)
        else:
            reply = _plain(outcome)
        return reply.model_copy(update={"meta": None}) if self._blind else reply

    async def _resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        space = self._of(context)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"{SCHEME}{ref.sha256}",
                    name=ref.path,
                    mime_type=_media_type(ref.path),
                    size=ref.bytes,
                )
                for ref in space.files.values()
            ]
        )

    async def _read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        space = self._of(context)
        digest = str(params.uri).removeprefix(SCHEME)
        data = await asyncio.to_thread(space.content, digest)
        if data is None:
            raise MCPError(types.INVALID_PARAMS, "This workspace has no such file.")
        blob = base64.b64encode(data).decode("ascii")
        kind = _media_type(space.files[digest].path)
        contents = types.BlobResourceContents(uri=params.uri, blob=blob, mime_type=kind)
        return types.ReadResourceResult(contents=[contents])


class _Endpoint:
    """The manager as an ASGI application; a plain method would be taken for a view."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._handle: Callable[..., Any] = manager.handle_request

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._handle(scope, receive, send)


def _tool(spec: ToolSpec) -> types.Tool:
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=input_schema(spec),
        _meta={SPEC_META: spec.model_dump(mode="json")},
    )


def _failed(failure: CallFailure) -> types.CallToolResult:
    said = " ".join(part for part in (failure.message, failure.mend) if part)
    return types.CallToolResult(
        content=[types.TextContent(text=said)],
        is_error=True,
        _meta={FAILURE_META: failure.model_dump(mode="json")},
    )


def _plain(reply: CallReply) -> types.CallToolResult:
    return types.CallToolResult(
        content=list(_texts(reply.result)), _meta={REPLY_META: reply.model_dump(mode="json")}
    )


def _done(reply: CallReply, space: Space) -> types.CallToolResult:
    """With links to what was written, and the pictures themselves where they are small."""
    content: list[types.ContentBlock] = [*_texts(reply.result)]
    for ref in reply.files:
        content.append(_link(ref))
        data = space.content(ref.sha256) if ref.bytes <= INLINE_BYTES else None
        kind = next((kind for form, kind in KINDS if data is not None and form.match(data)), None)
        if data is not None and kind in IMAGE_KINDS:
            encoded = base64.b64encode(data).decode("ascii")
            content.append(types.ImageContent(data=encoded, mime_type=f"image/{kind}"))
    return types.CallToolResult(content=content, _meta={REPLY_META: reply.model_dump(mode="json")})


def _texts(result: ToolResult) -> list[types.TextContent]:
    """The words that an agent of ours would see, a block for each part."""
    return [
        types.TextContent(
            text=part.content if part.type == "text" else f"[{part.type}]({part.content})"
        )
        for part in result.parts
    ]


def _link(ref: FileRef) -> types.ResourceLink:
    return types.ResourceLink(
        uri=f"{SCHEME}{ref.sha256}",
        name=ref.path,
        description=f"`{ref.path}`",
        mime_type=_media_type(ref.path),
        size=ref.bytes,
    )


def _media_type(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def _is_text(value: Any) -> bool:
    """Whether every text in a JSON value can be written down; JSON can name half a character."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, dict):
        return all(_is_text(key) and _is_text(entry) for key, entry in value.items())
    if isinstance(value, list):
        return all(_is_text(entry) for entry in value)
    return True


async def serve_stdio(source: ToolSource, workspace: Workspace) -> None:
    """Serve MCP on standard input and output until the client leaves."""
    run = TokenHolder("stdio", new_token())
    space = Space("stdio", run, run.workspace_token("stdio"), workspace)
    await McpFace(Caller(source, ServerLimits()), space=space).over_stdio()
