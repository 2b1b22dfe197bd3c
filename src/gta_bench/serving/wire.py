"""What travels between the tool server and its clients."""

from typing import Annotated, Literal

from pydantic import Field

from gta_bench.records.base import Record
from gta_bench.records.calls import ToolResult
from gta_bench.records.files import PortablePath
from gta_bench.records.tools import ToolSpec

PROTOCOL = 1
KEY_HEADER = "idempotency-key"
REPLY_META = "gta-bench/reply"
FAILURE_META = "gta-bench/failure"
SPEC_META = "gta-bench/spec"
KEY_META = "gta-bench/idempotency-key"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileRef(Record):
    """A file of a workspace by its content; the bytes travel apart from it."""

    path: PortablePath
    sha256: Sha256
    bytes: Annotated[int, Field(ge=0)]


class OpenWorkspace(Record):
    """The files that a new workspace begins with, outputs in the order they were made."""

    files: Annotated[tuple[FileRef, ...], Field(max_length=1000)] = ()


class OpenedWorkspace(Record):
    """A workspace of the server, the token that is good for it alone, and its MCP address."""

    workspace: str
    token: str
    mcp: str


class WorkspaceFiles(Record):
    """What a workspace holds."""

    files: tuple[FileRef, ...]


class MissingFiles(Record):
    """Contents that the server does not have; send them, then ask again."""

    missing: tuple[Sha256, ...]


class ToolList(Record):
    """Every tool of the server."""

    tools: tuple[ToolSpec, ...]


class Versions(Record):
    """What is running."""

    protocol: int
    packages: dict[str, str]


class CallReply(Record):
    """A result, and what the call wrote, oldest first."""

    result: ToolResult
    files: tuple[FileRef, ...] = ()


FailureKind = Literal["error", "unavailable", "busy", "refused"]


class CallFailure(Record):
    """Why a call has no result.

    `error` and `unavailable` are the tool's own words, for the agent; the others concern the
    exchange and never reach it. `mend` is for `unavailable` alone.
    """

    kind: FailureKind
    message: str
    mend: str = ""
