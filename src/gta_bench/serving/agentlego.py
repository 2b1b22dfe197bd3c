"""Tools of a server in AgentLego's format, so that existing deployments can be compared.

The format has no token, no health check and no version. Its results carry no file names, so outputs
are named after the tool. A text that is a path refers to a file on the server's own machine.
"""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import EnvironmentProblem, ToolError
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import FILE_TYPES, Parameter, ParameterType, ToolSpec
from gta_bench.serving.client import Exchange, RemoteSource
from gta_bench.tools.offering import check_call

PLAIN: Mapping[str | None, ParameterType] = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
}
SUFFIXES: Mapping[ParameterType, str] = {"image": ".png", "audio": ".wav", "video": ".mp4"}
TOOL_FAILED = frozenset({408, 500})  # a tool that took too long: 408 as specified, 500 in practice
JSON = TypeAdapter[JsonValue](JsonValue)


class _Part(BaseModel):
    """A part of an OpenAPI page; fields that we do not need are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Schema(_Part):
    ref: Annotated[str | None, Field(alias="$ref")] = None
    type: str | None = None
    format: str = ""
    description: str | None = None
    default: JsonValue = None
    properties: "dict[str, _Schema]" = {}
    required: tuple[str, ...] = ()
    prefix_items: "Annotated[tuple[_Schema, ...], Field(alias='prefixItems')]" = ()
    items: "_Schema | None" = None


class _Media(_Part):
    form: Annotated[_Schema, Field(alias="schema")] = _Schema()


class _Body(_Part):
    content: dict[str, _Media] = {}


class _Operation(_Part):
    name: Annotated[str, Field(alias="operationId")]
    summary: str = ""
    description: str = ""
    body: Annotated[_Body, Field(alias="requestBody")] = _Body()
    responses: dict[str, _Body] = {}


class _Components(_Part):
    schemas: dict[str, _Schema] = {}


class _Page(_Part):
    paths: dict[str, dict[str, _Operation]]
    components: _Components = _Components()

    def resolve(self, schema: _Schema) -> _Schema:
        """Return the schema itself, or the one that it refers to."""
        if schema.ref is None:
            return schema
        return self.components.schemas.get(schema.ref.rpartition("/")[2], _Schema())

    def form(self, body: _Body | None) -> _Schema:
        """Return the schema of a request or response body, of whatever media type."""
        media = next(iter(body.content.values()), None) if body is not None else None
        return _Schema() if media is None else self.resolve(media.form)


class AgentLegoTools(RemoteSource):
    """The tools that a server's OpenAPI page lists."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._paths: dict[str, str] = {}

    async def connect(self) -> None:
        """Read which tools the server has; call this first."""
        response = await self._exchange.send("GET", "/openapi.json")
        try:
            page = _Page.model_validate_json(response.content)
        except ValidationError as exc:
            raise EnvironmentProblem(
                f"{self._exchange.url} is not an AgentLego server: /openapi.json cannot be read."
            ) from exc
        for path, methods in page.paths.items():
            if "post" in methods:
                spec = _read_spec(page, methods["post"])
                self._specs[spec.name] = spec
                self._paths[spec.name] = path

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Send texts and files, and write the files of the reply to the workspace."""
        check_call(self._specs, name, arguments)
        spec = self._specs[name]
        texts, files = await asyncio.to_thread(_make_form, workspace, spec, arguments)
        response = await self._exchange.send(
            "POST", self._paths[name], final=TOOL_FAILED, data=texts, files=files or None
        )
        if response.status_code != 200:
            raise ToolError(f"{name}: {_detail(response)}")
        parts = await asyncio.to_thread(self._read_reply, workspace, spec, response.content)
        return ToolResult(
            parts=parts,
            tool=name,
            tool_version="unknown",
            backend=f"AgentLego at {urlsplit(self._exchange.url).netloc}",
            seconds=response.elapsed.total_seconds(),
        )

    async def release(self, workspace: Workspace) -> None:
        """Do nothing: the server keeps no workspace."""

    def _read_reply(
        self, workspace: Workspace, spec: ToolSpec, content: bytes
    ) -> tuple[ReplyPart, ...]:
        try:
            value = JSON.validate_json(content)
        except ValidationError as exc:
            raise self._exchange.explain(f"sent a reply of {spec.name} that is not JSON.") from exc
        several = len(spec.outputs) > 1 and isinstance(value, list)
        values = value if several and isinstance(value, list) else [value]
        return tuple(
            self._read_part(workspace, spec.name, output.type, entry)
            for output, entry in zip(spec.outputs, values, strict=False)
        )

    def _read_part(
        self, workspace: Workspace, tool: str, kind: ParameterType, value: JsonValue
    ) -> ReplyPart:
        text = _to_text(value)
        if kind not in FILE_TYPES:
            return ReplyPart(type="text", content=text)
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as exc:
            raise self._exchange.explain(f"sent a file of {tool} that is not base64.") from exc
        written = workspace.write(tool.lower(), data, suffix=SUFFIXES.get(kind, ".bin"))
        return ReplyPart(type=kind, content=written.path)


def _read_spec(page: _Page, operation: _Operation) -> ToolSpec:
    form = page.form(operation.body)
    inputs = [
        Parameter(
            name=name,
            type=_read_type(page.resolve(schema)),
            description=schema.description,
            optional=name not in form.required,
            default=schema.default,
        )
        for name, schema in form.properties.items()
    ]
    answer = page.form(operation.responses.get("200"))
    each = answer.prefix_items or ((answer.items,) if answer.items else (answer,))
    return ToolSpec(
        name=operation.name,
        description=operation.description or operation.summary,
        inputs=tuple(inputs),
        outputs=tuple(Parameter(type=_read_type(page.resolve(schema))) for schema in each),
    )


def _read_type(schema: _Schema) -> ParameterType:
    """Return the type that a format such as `image/png;base64` names."""
    kind, semicolon, _ = schema.format.partition(";")
    if not semicolon:
        return PLAIN.get(schema.type, "text")
    for known in SUFFIXES:
        if known in kind:
            return known
    return "file"


def _make_form(
    workspace: Workspace, spec: ToolSpec, arguments: Mapping[str, JsonValue]
) -> tuple[dict[str, str], dict[str, tuple[str, bytes]]]:
    """Return the fields of a form: the content of files, everything else as text; blocks."""
    texts: dict[str, str] = {}
    files: dict[str, tuple[str, bytes]] = {}
    for name, value in arguments.items():
        parameter = spec.input(name)
        if parameter is not None and parameter.type in FILE_TYPES and isinstance(value, str):
            path = workspace.resolve(value)
            files[name] = (path.rpartition("/")[2], workspace.read(path))
        elif value is not None:
            texts[name] = _to_text(value)
    return texts, files


def _to_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else JSON.dump_json(value).decode()


def _detail(response: httpx.Response) -> str:
    """Return the server's own explanation of a failure."""
    try:
        body = JSON.validate_json(response.content)
    except ValidationError:
        body = response.text
    detail = body.get("detail", body) if isinstance(body, dict) else body
    return f"{_to_text(detail)[:1000]} (status {response.status_code})"
