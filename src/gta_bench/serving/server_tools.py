"""Somebody else's MCP server as a ToolSource: listed once, called over stdio or streamable HTTP.

A server that is a command runs in a cell of its own, as long as the unit that uses it. Its tools
are named `SERVER__TOOL`; its schemas, and the arguments of calls, are passed on unchanged.
"""

import asyncio
import base64
import binascii
import json
import mimetypes
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import PurePosixPath
from time import perf_counter
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import JsonValue

from gta_bench.confine.names import quote_foreign
from gta_bench.confine.service import ServiceProcess
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import GtaError, ToolError, ToolServerFailure, format_count
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tool_servers import ServerState, StateSnapshot
from gta_bench.records.tools import (
    SERVER_SEPARATOR,
    ParameterType,
    ServedTool,
    ToolSpec,
    list_parameters,
)
from gta_bench.redaction import current_redactor
from gta_bench.serving.server_state import KeepFile, StateTooLarge, has_state, take_snapshot
from gta_bench.serving.tool_servers import plan_service
from gta_bench.settings import ToolServerSettings, expand_variables
from gta_bench.tools.offering import check_name

MOST_PAGES: Final = 100
MOST_TOOLS: Final = 1000
MOST_CHARACTERS: Final = 1_000_000
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")
# Beyond a call's own limit, for a client that does not end it.
GRACE: Final = 5.0
# Errors that the SDK makes itself, and the words of the first.
OWN_CODES: Final = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)
CLOSED: Final = "Connection closed"
# Raised by the SDK for a server that breaks the protocol or its own schemas.
BROKEN: Final = (RuntimeError, ValueError, LookupError, TypeError)
GONE: Final = (
    *(OSError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError),
    anyio.EndOfStream,
)
KINDS: Final[Mapping[str, ParameterType]] = {"image": "image", "audio": "audio", "video": "video"}
# Names that Python does not know on every system.
SUFFIXES: Final = {"audio/wav": ".wav", "audio/mp3": ".mp3", "image/webp": ".webp"}
_Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerTools:
    """The tools of one open server, as listed when it was opened.

    `snapshot` keeps its state as it is at a time, if it declares one.
    """

    def __init__(
        self,
        name: str,
        connection: "_Connection",
        specs: Mapping[str, ToolSpec],
        snapshot: Callable[[], Awaitable[StateSnapshot]] | None = None,
    ) -> None:
        self._name = name
        self._connection = connection
        self._specs = specs
        self._snapshot = snapshot
        self._before = StateSnapshot()

    async def note_state(self) -> None:
        """Keep the state before the first call."""
        if self._snapshot is not None:
            self._before = await self._snapshot()

    async def read_state(self) -> ServerState | None:
        """End the server, and return its state before the first and after the last call.

        Raises ToolServerFailure if it cannot be read.
        """
        if self._snapshot is None:
            return None
        await self._connection.end()
        found = ServerState(server=self._name, before=self._before)
        try:
            return found.model_copy(update={"after": await self._snapshot()})
        except StateTooLarge as exc:  # it was not before the first call, so the system made it so
            return found.model_copy(update={"excess": exc.problem})

    def specs(self) -> Mapping[str, ToolSpec]:
        """Return the server's tools; later changes of its list are not seen."""
        return self._specs

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Call a tool; what the server says about a failed call is a ToolError.

        Raises ToolServerFailure if the server is gone.
        """
        check_name(self._specs, name)
        start = perf_counter()
        own = name.removeprefix(f"{self._name}{SERVER_SEPARATOR}")
        found = await self._connection.call(own, arguments)
        parts = await asyncio.to_thread(read_result, found, workspace, name)
        return ToolResult(
            parts=parts,
            tool=name,
            tool_version=self._connection.version,
            backend=self._connection.backend,
            jail=self._connection.jail,
            seconds=perf_counter() - start,
        )


@asynccontextmanager
async def open_server(
    name: str, server: ToolServerSettings, workspace: Workspace, keep: KeepFile | None = None
) -> AsyncIterator[ServerTools]:
    """Start or reach a server for one unit, and list its tools; raises ToolServerFailure.

    With `keep`, which stores a file, the server's state is kept if it declares one.
    """
    async with AsyncExitStack() as stack:
        service = snapshot = None
        if server.command is not None:
            plan = plan_service(name, server, workspace.root)
            service = await stack.enter_async_context(ServiceProcess(plan))
            if keep is not None and has_state(server):
                snapshot = partial(take_snapshot, name, server, service, keep)
        connection = await stack.enter_async_context(_Connection(name, server, service))
        specs = [make_spec(name, tool) for tool in await connection.list_tools()]
        found = {spec.name: spec for spec in specs}
        if len(found) < len(specs):
            raise connection.failure("lists two tools with the same name")
        opened = ServerTools(name, connection, found, snapshot)
        await opened.note_state()
        yield opened


class _Connection:
    """A client of the server in a task of its own, so that its failures end no other task."""

    def __init__(
        self, name: str, server: ToolServerSettings, service: ServiceProcess | None
    ) -> None:
        self._name = name
        self._settings = server
        self._service = service
        self._client: Client | None = None
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "_Connection":
        self._task = asyncio.create_task(self._hold())
        opened = asyncio.create_task(self._opened.wait())
        try:
            await self._first(opened, self._settings.start_seconds)
        except BaseException:
            await self._close()
            raise
        finally:
            opened.cancel()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _hold(self) -> None:
        """Keep the client open until the connection is closed."""
        async with self._transport() as transport, Client(transport, mode="auto") as client:
            self._client = client
            self._opened.set()
            await self._closing.wait()

    async def end(self) -> None:
        """Close the connection, and let the server end if it runs here."""
        await self._close()
        if self._service is not None:
            await self._service.finish()

    async def _close(self) -> None:
        self._closing.set()
        if self._task is not None:
            with anyio.CancelScope(shield=True):
                if self._client is not None:
                    await asyncio.wait({self._task}, timeout=GRACE)
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
        where = f"[tool_servers.{self._name}]"
        if self._service is not None:
            yield _speak(self._service)
            return
        headers = {
            key: expand_variables(text, where) for key, text in self._settings.headers.items()
        }
        url = expand_variables(self._settings.url or "", where)
        timeout = httpx2.Timeout(self._settings.call_seconds, connect=self._settings.start_seconds)
        async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:
            yield streamable_http_client(url, http_client=http)

    @property
    def client(self) -> Client:
        """The open client."""
        assert self._client is not None
        return self._client

    @property
    def jail(self) -> str | None:
        """Where the server runs, if it runs here."""
        return None if self._service is None else "bubblewrap"

    @property
    def version(self) -> str:
        """The version that the server states."""
        info = self.client.server_info
        return "" if info is None else current_redactor().text(info.version)

    @property
    def backend(self) -> str:
        """The name and version that the server states."""
        info = self.client.server_info
        stated = self._name if info is None else f"{info.name} {info.version}"
        return current_redactor().text(f"tool server {stated}".strip())

    async def _gone(self, problem: str) -> ToolServerFailure:
        """Return the failure of a server that is gone, with how it ended."""
        if self._service is not None:
            problem = f"{problem}: {await self._service.describe_end()}"
        return self.failure(problem)

    def failure(self, problem: str) -> ToolServerFailure:
        """Return the failure of the server in one line."""
        message = f"Tool server {self._name!r} {problem}. "
        fix = f"Correct [tool_servers.{self._name}] in gta.toml, or the server."
        return ToolServerFailure(current_redactor().text(message) + fix)

    async def list_tools(self) -> list[types.Tool]:
        """Return all tools of the server."""
        asked, seconds = asyncio.create_task(self._list()), self._settings.start_seconds
        try:
            return cast(list[types.Tool], await self._first(asked, seconds))
        except TimeoutError as exc:
            raise self.failure(f"did not list its tools within {seconds:g} seconds") from exc
        except (MCPError, *BROKEN) as exc:
            raise self.failure(f"cannot list its tools ({_explain(exc)})") from exc

    async def _list(self) -> list[types.Tool]:
        tools: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) > MOST_TOOLS:
                break
        else:
            raise self.failure(f"lists tools on more than {MOST_PAGES} pages")
        if len(tools) > MOST_TOOLS:
            raise self.failure(f"lists more than {MOST_TOOLS} tools")
        for tool in tools:
            if TOOL_NAME.fullmatch(tool.name) is None:
                raise self.failure(f"lists a tool with the name {quote_foreign(tool.name)}")
        return tools

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> types.CallToolResult:
        """Call a tool, within the time of a call."""
        seconds = self._settings.call_seconds
        asked = asyncio.create_task(
            self.client.call_tool(tool, dict(arguments), read_timeout_seconds=seconds)
        )
        name = f"{self._name}{SERVER_SEPARATOR}{tool}"
        try:
            return cast(types.CallToolResult, await self._first(asked, seconds + GRACE))
        except TimeoutError as exc:
            raise ToolError(f"{name} did not answer within {seconds:g} seconds.") from exc
        except MCPError as exc:
            if exc.code == types.REQUEST_TIMEOUT:
                raise ToolError(f"{name} did not answer within {seconds:g} seconds.") from exc
            # It answered, so the agent can try something else.
            raise ToolError(current_redactor().text(f"{name}: {exc.message}")) from exc
        except BROKEN as exc:
            said = str(exc).strip().splitlines() or [type(exc).__name__]
            raise ToolError(
                current_redactor().text(f"{name} sent a result that cannot be read: {said[0]}")
            ) from exc

    async def _first(self, asked: "asyncio.Task[Any]", seconds: float) -> Any:
        """Return what was asked; raises ToolServerFailure if the server ends first or is silent."""
        assert self._task is not None
        try:
            done, _ = await asyncio.wait(
                {asked, self._task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if asked in done:
                return asked.result()
            if self._task in done:
                raised = self._task.exception()
                if isinstance(raised, GtaError):
                    raise raised
                raise await self._gone(f"cannot be used ({_explain(raised)})")
        except GONE as exc:
            raise await self._gone(f"is gone ({_explain(exc)})") from exc
        except MCPError as exc:
            # Over HTTP, a server may send the code of the SDK, but with words of its own.
            if exc.code == types.CONNECTION_CLOSED and exc.message == CLOSED:
                raise await self._gone("is gone") from exc
            raise
        finally:
            asked.cancel()
        if self._client is None:
            raise self.failure(f"did not start within {seconds:g} seconds")
        raise TimeoutError


def _explain(raised: BaseException | None) -> str:
    """Return the first line of what ended a connection."""
    while isinstance(raised, BaseExceptionGroup):
        raised = raised.exceptions[0]
    lines = str(raised or "").strip().splitlines()
    name = type(raised).__name__ if raised is not None else "it closed the connection"
    return f"{name}: {lines[0]}" if lines else name


@asynccontextmanager
async def _speak(service: ServiceProcess) -> AsyncIterator[_Streams]:
    """Yield the streams of the SDK over the pipes of a service; lines that are no JSON are left."""
    found, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, asked = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        async with found:
            while (line := await service.receive()) is not None:
                try:
                    if "id" not in json.loads(line):
                        continue  # a notification: none changes what we do, and there may be many
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValueError, TypeError):
                    continue
                if isinstance(message, types.JSONRPCError) and message.error.code in OWN_CODES:
                    # The SDK has these codes for a server that is gone or silent; this one is not.
                    message.error.code = types.INTERNAL_ERROR
                try:
                    await found.send(SessionMessage(message))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    async def send() -> None:
        async with asked:
            async for one in asked:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await service.send(text.encode())
                except ConnectionError:
                    found.close()
                    return

    async with anyio.create_task_group() as group, incoming, outgoing:
        group.start_soon(receive)
        group.start_soon(send)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel()


def make_spec(server: str, tool: types.Tool) -> ToolSpec:
    """Return a tool as we offer it; no text of it has a secret."""
    said = tool.model_dump(mode="json", by_alias=True, exclude_unset=True)
    said = cast(dict[str, Any], current_redactor().value(said))
    schema = said["inputSchema"]
    return ToolSpec(
        name=f"{server}{SERVER_SEPARATOR}{tool.name}",
        description=said.get("description") or "",
        inputs=tuple(list_parameters(schema)),
        served=ServedTool(
            server=server,
            input_schema=schema,
            output_schema=said.get("outputSchema"),
            annotations=said.get("annotations"),
        ),
    )


def read_result(
    found: types.CallToolResult, workspace: Workspace, name: str
) -> tuple[ReplyPart, ...]:
    """Return a result as our tools give theirs: texts, and files in the task's outputs.

    Raises ToolError if the server says that the call failed.
    """
    if found.is_error:
        texts = [part.content for part in _iter_parts(found, None, name)]
        raise ToolError("\n".join(texts).strip()[:MOST_CHARACTERS] or f"{name} failed.")
    parts = tuple(_iter_parts(found, workspace, name))
    size = sum(len(part.content) for part in parts)
    if size > MOST_CHARACTERS:
        raise ToolError(
            f"The result of {name} has {format_count(size, 'character')}; at most "
            f"{MOST_CHARACTERS:,} are passed on. Ask for less."
        )
    return parts


def _iter_parts(
    found: types.CallToolResult, workspace: Workspace | None, name: str
) -> Iterator[ReplyPart]:
    """Yield the parts of a result; without a workspace, files are only mentioned."""
    for block in found.content:
        match block:
            case types.TextContent():
                yield ReplyPart(type="text", content=block.text)
            case types.ImageContent() | types.AudioContent():
                yield _keep_file(block.data, block.mime_type, workspace, name=name)
            case types.ResourceLink():
                about = f": {block.description}" if block.description else ""
                yield ReplyPart(type="text", content=f"[{block.name}]({block.uri}){about}")
            case types.EmbeddedResource(resource=types.TextResourceContents() as note):
                yield ReplyPart(type="text", content=f"{note.uri}\n{note.text}")
            case types.EmbeddedResource(resource=types.BlobResourceContents() as blob):
                file = PurePosixPath(unquote(urlsplit(str(blob.uri)).path)).name
                yield _keep_file(blob.blob, blob.mime_type, workspace, name=name, file=file)
    if found.structured_content is not None and not _is_said(found, found.structured_content):
        text = json.dumps(found.structured_content, ensure_ascii=False)
        yield ReplyPart(type="text", content=text)


def _is_said(found: types.CallToolResult, structured: Any) -> bool:
    """Whether the texts say all of the structured content, as servers do for older clients.

    They have its JSON, or that of each of its values, or the values themselves.
    """
    said: list[Any] = []
    for block in found.content:
        if isinstance(block, types.TextContent):
            said.append(block.text)
            with suppress(ValueError):
                said.append(json.loads(block.text))
    values = structured.values() if isinstance(structured, dict) and structured else [structured]
    return structured in said or all(value in said for value in values)


def _keep_file(
    encoded: str, mime_type: str | None, workspace: Workspace | None, *, name: str, file: str = ""
) -> ReplyPart:
    """Write a file of a result to the task's outputs, under its own name or the tool's."""
    kind = KINDS.get((mime_type or "").partition("/")[0], "file")
    if workspace is None:
        return ReplyPart(type="text", content=f"[{kind}]")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ToolError(f"{name} sent a file that is not base64.") from exc
    kind_name = (mime_type or "").partition(";")[0].strip().lower()
    suffix = SUFFIXES.get(kind_name) or mimetypes.guess_extension(kind_name) or ".bin"
    if not PurePosixPath(file).suffix:
        file = f"{file or name}{suffix}"
    return ReplyPart(type=kind, content=workspace.write(file, data).path)
