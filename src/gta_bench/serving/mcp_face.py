"""The tools over MCP: stateless HTTP with JSON replies, a Unix socket for a harness, and stdio.

An agent sees the text of a result and small pictures. Files are resource links; their content is
downloaded by digest, over HTTP or as resources. Our own client finds the whole reply in `_meta`.
A system that is measured gets no `_meta`, because the reply names backends, tapes and controls.
"""

import asyncio
import base64
import mimetypes
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.routing import Route

from gta_bench.confine.systems import explain_no_jail
from gta_bench.confine.workspace import IMAGE_KINDS, Workspace
from gta_bench.datasets.files import KINDS
from gta_bench.records.tools import ToolSpec
from gta_bench.serving.gate import SPACE, App, Gate
from gta_bench.serving.limits import Busy, ServerLimits
from gta_bench.serving.listening import make_server
from gta_bench.serving.spaces import Caller, Space, Spaces
from gta_bench.serving.tokens import RunTokens, TokenHolder, new_token
from gta_bench.serving.wire import (
    FAILURE_META,
    KEY_META,
    REPLY_META,
    SPEC_META,
    CallFailure,
    CallReply,
    input_schema,
)
from gta_bench.tools.source import ToolSource

Context = ServerRequestContext[Any, Any]
INLINE_BYTES = 256 * 1024  # of a picture; larger ones are only linked
SCHEME = "artefact://"
BUSY_CODE = -32029
# Of one harness at the same time. Each takes a file descriptor of the run, which all units share.
CONNECTIONS = 64


class McpFace:
    """An MCP server whose workspace is that of the request, or `space`.

    With `blind`, `_meta` is left out, because the caller is a system that is measured.
    """

    def __init__(self, caller: Caller, *, space: Space | None = None, blind: bool = False) -> None:
        self._caller = caller
        self._space = space
        self._blind = blind
        self._tools = [_describe_tool(spec, blind=blind) for spec in caller.specs.values()]
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
        """Return the ASGI application; use it within `running`."""
        self._manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=body_bytes
        )
        return _Endpoint(self._manager)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context that the application of `over_http` needs."""
        assert self._manager is not None, "call over_http first"
        return self._manager.run()

    async def over_stdio(self) -> None:
        """Serve one client on standard input and output until it disconnects."""
        async with stdio_server() as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())

    def _find_space(self, context: Context) -> Space:
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
        space, arguments = self._find_space(context), params.arguments or {}
        if not _is_text(arguments):
            raise MCPError(types.INVALID_PARAMS, "The arguments contain unpaired surrogates.")
        key = (context.meta or {}).get(KEY_META)
        try:
            outcome = await self._caller.call(
                space, params.name, arguments, key=key if isinstance(key, str) else None
            )
        except Busy as exc:
            raise MCPError(BUSY_CODE, str(exc)) from exc
        if isinstance(outcome, CallFailure):
            parts = (outcome.message, outcome.fix)
            content: list[types.ContentBlock] = [
                types.TextContent(text=" ".join(part for part in parts if part))
            ]
        else:
            content = await asyncio.to_thread(_make_content, outcome, space)
        failed = isinstance(outcome, CallFailure)
        key = FAILURE_META if failed else REPLY_META
        meta = None if self._blind else {key: outcome.model_dump(mode="json")}
        return types.CallToolResult(content=content, is_error=failed, _meta=meta)

    async def _resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        space = self._find_space(context)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"{SCHEME}{ref.sha256}",
                    name=ref.path,
                    mime_type=_guess_type(ref.path),
                    size=ref.bytes,
                )
                for ref in space.files.values()
            ]
        )

    async def _read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        space = self._find_space(context)
        digest = str(params.uri).removeprefix(SCHEME)
        data = await asyncio.to_thread(space.content, digest)
        if data is None:
            raise MCPError(types.INVALID_PARAMS, "This workspace has no such file.")
        blob = base64.b64encode(data).decode("ascii")
        kind = _guess_type(space.files[digest].path)
        contents = types.BlobResourceContents(uri=params.uri, blob=blob, mime_type=kind)
        return types.ReadResourceResult(contents=[contents])


class _Endpoint:
    """The manager as an ASGI application; Starlette would take a plain method for a view."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._manager.handle_request(scope, receive, send)


def _describe_tool(spec: ToolSpec, *, blind: bool) -> types.Tool:
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=input_schema(spec),
        _meta=None if blind else {SPEC_META: spec.model_dump(mode="json")},
    )


def _make_content(reply: CallReply, space: Space) -> list[types.ContentBlock]:
    """Return the texts of a reply, links to its files, and its pictures if they are small."""
    content: list[types.ContentBlock] = [
        types.TextContent(
            text=part.content if part.type == "text" else f"[{part.type}]({part.content})"
        )
        for part in reply.result.parts
    ]
    for ref in reply.files:
        content.append(
            types.ResourceLink(
                uri=f"{SCHEME}{ref.sha256}",
                name=ref.path,
                description=f"`{ref.path}`",
                mime_type=_guess_type(ref.path),
                size=ref.bytes,
            )
        )
        data = space.content(ref.sha256) if ref.bytes <= INLINE_BYTES else None
        kind = next((kind for form, kind in KINDS if data is not None and form.match(data)), None)
        if data is not None and kind in IMAGE_KINDS:
            encoded = base64.b64encode(data).decode("ascii")
            content.append(types.ImageContent(data=encoded, mime_type=f"image/{kind}"))
    return content


def _guess_type(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def _is_text(value: Any) -> bool:
    """Return whether every text in a JSON value can be encoded; JSON allows half of a pair."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, dict):
        return all(_is_text(key) and _is_text(entry) for key, entry in value.items())
    return not isinstance(value, list) or all(map(_is_text, value))


async def serve_stdio(source: ToolSource, workspace: Workspace) -> None:
    """Serve MCP on standard input and output until the client disconnects."""
    run = TokenHolder("stdio", new_token())
    space = Space("stdio", run, run.workspace_token("stdio"), workspace)
    await McpFace(Caller(source, ServerLimits()), space=space).over_stdio()


@asynccontextmanager
async def serve_unit(
    source: ToolSource, workspace: Workspace, token: str, path: Path
) -> AsyncIterator[None]:
    """Serve one unit's tools over MCP on a Unix socket, for the harness that works on it.

    Clients need the token; they can call the tools in that workspace only.
    """
    if sys.platform == "win32":
        raise explain_no_jail("A harness")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        path.chmod(0o666)  # the harness may be another user; nobody else has access to the folder
        async with serve_unit_on(listening, source, workspace, token):
            yield


@asynccontextmanager
async def serve_unit_on(
    listening: socket.socket, source: ToolSource, workspace: Workspace, token: str
) -> AsyncIterator[None]:
    """Serve one unit's tools at `/mcp` on a socket that is bound; see `serve_unit`."""
    limits, tokens = ServerLimits(connections=CONNECTIONS), RunTokens([token])
    run = tokens.run(token)
    assert run is not None
    space = Space("unit", run, run.workspace_token("unit"), workspace)
    face = McpFace(Caller(source, limits), space=space, blind=True)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with face.running():
            yield

    app = Starlette(routes=[Route("/mcp", face.over_http(limits.body_bytes))], lifespan=lifespan)
    spaces = Spaces(workspace.root, limits)
    gate = Gate(cast(App, app), tokens=tokens, spaces=spaces, limits=limits)
    server = make_server(gate, limits, guest=True)
    listening.listen()  # now, so that a client that comes before the server starts can wait
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
