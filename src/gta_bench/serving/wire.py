"""Messages between the tool server and its clients, and tools as JSON Schema."""

from typing import Annotated, Literal

from pydantic import AliasChoices, Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.calls import ToolResult
from gta_bench.records.files import PortablePath
from gta_bench.records.tools import FILE_TYPES, Parameter, ParameterType, ToolSpec

PROTOCOL = 1
KEY_HEADER = "idempotency-key"
REPLY_META = "gta-bench/reply"
FAILURE_META = "gta-bench/failure"
SPEC_META = "gta-bench/spec"
KEY_META = "gta-bench/idempotency-key"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileRef(Record):
    """A file of a workspace and its digest; the content is sent separately."""

    path: PortablePath
    sha256: Sha256
    bytes: Annotated[int, Field(ge=0)]


class OpenWorkspace(Record):
    """The files of a new workspace, outputs oldest first."""

    files: Annotated[tuple[FileRef, ...], Field(max_length=1000)] = ()


class OpenedWorkspace(Record):
    """A workspace on the server, the token for it alone, and its MCP path."""

    workspace: str
    token: str
    mcp: str


class WorkspaceFiles(Record):
    """The files of a workspace."""

    files: tuple[FileRef, ...]


class MissingFiles(Record):
    """Digests that the server does not have; upload them, then open the workspace again."""

    missing: tuple[Sha256, ...]


class ToolList(Record):
    """Every tool of the server."""

    tools: tuple[ToolSpec, ...]


class Versions(Record):
    """The protocol and the packages of the server."""

    protocol: int
    packages: dict[str, str]


class CallReply(Record):
    """A result and the files that the call wrote, oldest first."""

    result: ToolResult
    files: tuple[FileRef, ...] = ()


FailureKind = Literal["error", "unavailable", "busy", "refused"]


class CallFailure(Record):
    """Why a call has no result.

    `error` and `unavailable` are messages of the tool and are shown to the agent; the others
    concern the server and never reach it. `fix` is for `unavailable` only.
    """

    kind: FailureKind
    message: str
    fix: str = Field("", validation_alias=AliasChoices("fix", "mend"))  # stored name


JSON_TYPES: dict[ParameterType, str] = {"bool": "boolean", "int": "integer", "float": "number"}


def input_schema(spec: ToolSpec) -> dict[str, JsonValue]:
    """Return the JSON Schema of a tool's arguments; files are paths in the workspace.

    The schema of a tool server's tool is its own.
    """
    if spec.served is not None:
        return dict(spec.served.input_schema)
    named = [(entry.name, entry) for entry in spec.inputs if entry.name]
    return {
        "type": "object",
        "properties": {name: _property(entry) for name, entry in named},
        "required": [name for name, entry in named if not entry.optional],
        "additionalProperties": False,
    }


def _property(entry: Parameter) -> dict[str, JsonValue]:
    schema: dict[str, JsonValue] = {"type": JSON_TYPES.get(entry.type, "string")}
    if entry.type in FILE_TYPES:
        path = f"Path of the {entry.type}, such as `inputs/NAME`."
        schema["description"] = f"{entry.description} {path}" if entry.description else path
    elif entry.description:
        schema["description"] = entry.description
    if entry.optional and entry.default is None:
        schema["type"] = [str(schema["type"]), "null"]
    if entry.default is not None:
        schema["default"] = entry.default
    return schema
