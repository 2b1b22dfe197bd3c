"""The tool server: one ASGI application over any ToolSource."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json
from starlette.routing import Route

from gta_bench.records.tools import ToolSpec
from gta_bench.serving.gate import RUN, SPACE, App, Gate
from gta_bench.serving.limits import Busy, ServerLimits
from gta_bench.serving.mcp_face import McpFace
from gta_bench.serving.spaces import Caller, MissingContents, Space, Spaces, UnfitFiles
from gta_bench.serving.tokens import RunTokens, TokenHolder
from gta_bench.serving.wire import (
    KEY_HEADER,
    PROTOCOL,
    CallFailure,
    CallReply,
    MissingFiles,
    OpenedWorkspace,
    OpenWorkspace,
    ToolList,
    Versions,
    WorkspaceFiles,
    input_schema,
)
from gta_bench.tools.source import ToolSource

PACKAGES = ("gta-bench", "fastapi", "mcp", "uvicorn")
STATUS = {"error": 422, "unavailable": 424, "busy": 429, "refused": 400}
SWEEP_SECONDS = 60
LONGEST_KEY = 100


def make_app(
    source: ToolSource, *, tokens: RunTokens, folder: Path, limits: ServerLimits | None = None
) -> App:
    """Return the server: HTTP routes and MCP over the same calls, behind one gate.

    Clients' files are stored in `folder` while the server runs; the caller removes it.
    """
    limits = limits or ServerLimits()
    caller = Caller(source, limits)
    spaces = Spaces(folder, limits)
    face = McpFace(caller)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with face.running():
            sweeper = asyncio.create_task(_sweep(spaces))
            try:
                yield
            finally:
                sweeper.cancel()
                with suppress(asyncio.CancelledError):
                    await sweeper

    app = FastAPI(
        title="gta-bench tools",
        version=version("gta-bench"),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    routes = _Routes(caller, spaces)
    app.router.routes.append(Route("/w/{workspace}/mcp", face.over_http(limits.body_bytes)))
    for spec in caller.specs.values():
        routes.add_tool(app, spec)
    routes.add_to(app)
    return Gate(cast(App, app), tokens=tokens, spaces=spaces, limits=limits)


async def _sweep(spaces: Spaces) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        await spaces.close_idle()


class _Routes:
    """The handlers; the gate has put the run and the workspace into the request's scope."""

    def __init__(self, caller: Caller, spaces: Spaces) -> None:
        self._caller = caller
        self._spaces = spaces

    def add_to(self, app: FastAPI) -> None:
        """Add all routes except those of the tools."""
        app.get("/healthz", summary="Whether the server is alive.")(self.health)
        app.get("/readyz", summary="Whether it accepts calls.")(self.ready)
        app.get("/version", summary="Versions of the server.", response_model=Versions)(
            self.versions
        )
        app.get("/v1/tools", summary="All tools.", response_model=ToolList)(self.tools)
        app.put(
            "/v1/artefacts/{sha256}",
            summary="Upload a file by its digest.",
            status_code=204,
            openapi_extra={"requestBody": _BINARY},
        )(self.upload)
        app.post(
            "/v1/workspaces",
            summary="Open a workspace with files that were uploaded before.",
            status_code=201,
            responses={201: {"model": OpenedWorkspace}, 409: {"model": MissingFiles}},
            openapi_extra={"requestBody": _json_body(_OPEN_WORKSPACE)},
        )(self.open)
        app.get(
            "/v1/w/{workspace}", summary="The files of a workspace.", response_model=WorkspaceFiles
        )(self.listing)
        app.delete(
            "/v1/w/{workspace}", summary="Close a workspace and delete its files.", status_code=204
        )(self.close)
        app.get(
            "/v1/w/{workspace}/artefacts/{sha256}",
            summary="A file of a workspace by its digest.",
            response_class=Response,
            responses={200: {"content": {"application/octet-stream": {}}}},
        )(self.download)

    def add_tool(self, app: FastAPI, spec: ToolSpec) -> None:
        """Add the route of one tool."""

        async def call(request: Request) -> Response:
            return await self._call(request, spec.name)

        app.post(
            f"/v1/w/{{workspace}}/tools/{spec.name}",
            summary=spec.description or spec.name,
            operation_id=spec.name,
            response_class=Response,
            responses={
                200: {"model": CallReply},
                422: {"model": CallFailure, "description": "The tool failed."},
                424: {"model": CallFailure, "description": "The tool cannot run here."},
                429: {"model": CallFailure, "description": "Try again later."},
            },
            openapi_extra={
                "parameters": [_WORKSPACE],
                "requestBody": _json_body(input_schema(spec)),
            },
        )(call)

    async def health(self) -> dict[str, str]:
        return {"status": "ok"}

    async def ready(self) -> dict[str, int]:
        return {"tools": len(self._caller.specs)}

    async def versions(self) -> Versions:
        return Versions(protocol=PROTOCOL, packages={name: version(name) for name in PACKAGES})

    async def tools(self) -> Response:
        return _reply(ToolList(tools=tuple(self._caller.specs.values())))

    async def upload(self, request: Request, sha256: str) -> Response:
        data = await request.body()
        digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        if digest != sha256:
            return _failure("refused", "The content does not match its digest.")
        await self._spaces.contents(_run(request)).keep(data)
        return Response(status_code=204)

    async def open(self, request: Request) -> Response:
        try:
            wanted = OpenWorkspace.model_validate_json(await request.body())
            space = await self._spaces.open(_run(request), wanted.files)
        except ValidationError as exc:
            return _failure("refused", f"{exc.error_count()} fields are invalid.")
        except MissingContents as exc:
            return _reply(MissingFiles(missing=exc.digests), status=409)
        except UnfitFiles as exc:
            return _failure("refused", str(exc))
        except Busy as exc:
            return _busy(exc)
        opened = OpenedWorkspace(workspace=space.id, token=space.token, mcp=f"/w/{space.id}/mcp")
        return _reply(opened, status=201)

    async def listing(self, request: Request, workspace: str) -> Response:
        return _reply(WorkspaceFiles(files=tuple(_space(request).files.values())))

    async def close(self, request: Request, workspace: str) -> Response:
        await self._spaces.close(_space(request))
        return Response(status_code=204)

    async def download(self, request: Request, workspace: str, sha256: str) -> Response:
        data = await asyncio.to_thread(_space(request).content, sha256)
        if data is None:
            return Response(status_code=404)
        return Response(data, media_type="application/octet-stream")

    async def _call(self, request: Request, name: str) -> Response:
        arguments = _parse_arguments(await request.body())
        if arguments is None:
            return _failure("refused", "The body is not a JSON object.")
        key = request.headers.get(KEY_HEADER)
        if key is not None and len(key) > LONGEST_KEY:
            return _failure("refused", f"The {KEY_HEADER} is too long.")
        try:
            outcome = await self._caller.call(_space(request), name, arguments, key=key)
        except Busy as exc:
            return _busy(exc)
        status = 200 if isinstance(outcome, CallReply) else STATUS[outcome.kind]
        return _reply(outcome, status=status)


# Without definitions: the page has them already, because responses use them too.
_OPEN_WORKSPACE = {
    key: value
    for key, value in OpenWorkspace.model_json_schema(
        ref_template="#/components/schemas/{model}"
    ).items()
    if key != "$defs"
}
_BINARY = {"content": {"application/octet-stream": {}}, "required": True}
_WORKSPACE = {"name": "workspace", "in": "path", "required": True, "schema": {"type": "string"}}


def _json_body(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": dict(schema)}}, "required": True}


def _parse_arguments(body: bytes) -> dict[str, JsonValue] | None:
    try:
        # Rejects what `json` accepts: NaN, unpaired surrogates, endless nesting.
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _run(request: Request) -> TokenHolder:
    return cast(TokenHolder, request.scope[RUN])


def _space(request: Request) -> Space:
    return cast(Space, request.scope[SPACE])


def _reply(record: BaseModel, *, status: int = 200) -> Response:
    return Response(record.model_dump_json(), status_code=status, media_type="application/json")


def _failure(kind: Any, message: str) -> Response:
    return _reply(CallFailure(kind=kind, message=message), status=STATUS[kind])


def _busy(exc: Busy) -> Response:
    response = _failure("busy", str(exc))
    response.headers["retry-after"] = f"{exc.wait:g}"
    return response
