"""Tools of a server in AgentLego's format, so that existing deployments can be compared.

The format has no token, no health and no version, and its results carry no file names, so outputs
are named after the tool. A text that is a path means a file of the server's own machine.
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
from gta_bench.errors import EnvironmentProblem, ToolError, ToolServerFailure
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import FILE_TYPES, Parameter, ParameterType, ToolSpec
from gta_bench.serving.exchange import Exchange

PLAIN: Mapping[str | None, ParameterType] = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
}
SUFFIXES: Mapping[ParameterType, str] = {"image": ".png", "audio": ".wav", "video": ".mp4"}
SAID_BY_TOOLS = frozenset({408, 500})  # a tool that took too long, as it is meant and as it comes
JSON = TypeAdapter[JsonValue](JsonValue)


class _Part(BaseModel):
    """A piece of an OpenAPI page; what we do not need is passed over."""

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
        """The schema itself, or the one it refers to."""
        if schema.ref is None:
            return schema
        return self.components.schemas.get(schema.ref.rpartition("/")[2], _Schema())

    def form(self, body: _Body | None) -> _Schema:
        """What a request takes, or an answer gives, whatever its media type."""
        media = next(iter(body.content.values()), None) if body is not None else None
        return _Schema() if media is None else self.resolve(media.form)


class AgentLegoTools:
    """The tools that a server's OpenAPI page lists."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._host = urlsplit(exchange.url).netloc
        self._specs: dict[str, ToolSpec] = {}
        self._paths: dict[str, str] = {}

    async def connect(self) -> None:
        """Learn which tools there are; the first thing to do."""
        response = await self._exchange.send("GET", "/openapi.json")
        try:
            page = _Page.model_validate_json(response.content)
        except ValidationError as exc:
            raise EnvironmentProblem(
                f"{self._exchange.url} is no AgentLego server: its /openapi.json cannot be read."
            ) from exc
        for path, methods in page.paths.items():
            if "post" in methods:
                spec = _spec(page, methods["post"])
                self._specs[spec.name] = spec
                self._paths[spec.name] = path

    def specs(self) -> dict[str, ToolSpec]:
        """The tools of the server."""
        return self._specs

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        """Send texts and files, and keep what comes back."""
        spec = self._specs.get(name)
        if spec is None:
            raise ToolError(f"There is no tool {name!r}. Tools: {', '.join(self._specs)}.")
        texts, files = await asyncio.to_thread(_sent, workspace, spec, arguments)
        response = await self._exchange.send(
            "POST", self._paths[name], final=SAID_BY_TOOLS, data=texts, files=files or None
        )
        if response.status_code != 200:
            raise ToolError(f"{name}: {_detail(response)}")
        parts = await asyncio.to_thread(self._kept, workspace, spec, response.content)
        return ToolResult(
            parts=parts,
            tool=name,
            tool_version="unknown",
            backend=f"AgentLego at {self._host}",
            seconds=response.elapsed.total_seconds(),
        )

    async def release(self, workspace: Workspace) -> None:
        """The server keeps nothing of a task."""

    async def aclose(self) -> None:
        """Close the connection."""
        await self._exchange.client.aclose()

    def _kept(self, workspace: Workspace, spec: ToolSpec, content: bytes) -> tuple[ReplyPart, ...]:
        try:
            value = JSON.validate_json(content)
        except ValidationError as exc:
            raise ToolServerFailure(
                f"The AgentLego server at {self._exchange.url} gave no JSON for {spec.name}."
            ) from exc
        several = len(spec.outputs) > 1 and isinstance(value, list)
        values = value if several and isinstance(value, list) else [value]
        kinds = spec.outputs if several else spec.outputs[:1]
        return tuple(
            _part(workspace, spec.name, kind.type, entry)
            for kind, entry in zip(kinds, values, strict=False)
        )


def _spec(page: _Page, operation: _Operation) -> ToolSpec:
    form = page.form(operation.body)
    inputs = [
        Parameter(
            name=name,
            type=_type(page.resolve(schema)),
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
        outputs=tuple(Parameter(type=_type(page.resolve(schema))) for schema in each),
    )


def _type(schema: _Schema) -> ParameterType:
    """By the word before the semicolon of a format such as `image/png;base64`."""
    kind, semicolon, _ = schema.format.partition(";")
    if not semicolon:
        return PLAIN.get(schema.type, "text")
    for known in SUFFIXES:
        if known in kind:
            return known
    return "file"


def _sent(
    workspace: Workspace, spec: ToolSpec, arguments: Mapping[str, JsonValue]
) -> tuple[dict[str, str], dict[str, tuple[str, bytes]]]:
    """The fields of a form: files by their content, all else as text; blocks."""
    texts: dict[str, str] = {}
    files: dict[str, tuple[str, bytes]] = {}
    for name, value in arguments.items():
        parameter = spec.input(name)
        if parameter is not None and parameter.type in FILE_TYPES and isinstance(value, str):
            path = workspace.resolve(value)
            files[name] = (path.rpartition("/")[2], workspace.read(path))
        elif value is not None:
            texts[name] = value if isinstance(value, str) else JSON.dump_json(value).decode()
    return texts, files


def _part(workspace: Workspace, tool: str, kind: ParameterType, value: JsonValue) -> ReplyPart:
    text = value if isinstance(value, str) else JSON.dump_json(value).decode()
    if kind not in FILE_TYPES:
        return ReplyPart(type="text", content=text)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ToolServerFailure(
            f"The AgentLego tool {tool} gave a file that is not base64."
        ) from exc
    kept = workspace.write(tool.lower(), data, suffix=SUFFIXES.get(kind, ".bin"))
    return ReplyPart(type=kind, content=kept.path)


def _detail(response: httpx.Response) -> str:
    """What the server says about a refusal."""
    try:
        body = JSON.validate_json(response.content)
    except ValidationError:
        body = response.text
    said = body.get("detail", body) if isinstance(body, dict) else body
    text = said if isinstance(said, str) else JSON.dump_json(said).decode()
    return f"{text[:1000]} (status {response.status_code})"
