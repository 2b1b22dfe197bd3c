"""A tape: every tool call of a run with its reply, and states of tool servers, one line each.

Every line is a complete record, so tapes can be read, searched and compared line by line, and a
recording that was killed leaves a shorter tape.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tool_servers import ServerState
from gta_bench.records.tools import ToolSpec

TapeMode = Literal["record", "replay", "replay-else-live"]
TapeOrigin = Literal["live", "reference"]


class TapeCall(Record):
    """The key by which a reply is found: everything that the reply depends on.

    `arguments` leave out values that equal the tool's defaults; `files` has the digest of every
    workspace file that the arguments name. `server` is the digest of the tool server that has the
    tool, if one has.
    """

    dataset: str
    task: str
    tool: str
    arguments: Mapping[str, JsonValue] = {}
    files: Mapping[str, str] = {}
    server: str = Field(default="", exclude_if=lambda server: not server)


class TapeFile(Record):
    """A file that a call wrote, stored by content; `replaced` if it overwrote another file."""

    path: str
    sha256: str
    replaced: bool = False


class DoneReply(Record):
    """A successful result; see `ToolResult`."""

    type: Literal["done"] = "done"
    parts: tuple[ReplyPart, ...]
    files: tuple[TapeFile, ...] = ()
    tool_version: str
    backend: str
    jail: str | None = None
    seconds: float = 0.0


class ErrorReply(Record):
    """The message of a `ToolError`."""

    type: Literal["error"] = "error"
    message: str


class UnavailableReply(Record):
    """The reason of a `ToolUnavailable`, and how to fix it."""

    type: Literal["unavailable"] = "unavailable"
    reason: str
    fix: str = Field(validation_alias=AliasChoices("fix", "mend"))  # stored name


TapeReply = Annotated[DoneReply | ErrorReply | UnavailableReply, Field(discriminator="type")]


class HeaderLine(Record):
    """The first line: the dataset, and whether the replies come from tools or a reference."""

    line: Literal["tape"] = "tape"
    format: Literal[1] = 1
    dataset: str
    origin: TapeOrigin


class ToolLine(Record):
    """A tool as offered, so that a replay needs no tools; the last line of a name counts."""

    line: Literal["tool"] = "tool"
    spec: ToolSpec


class CallLine(Record):
    """One reply. `number` counts equal calls of one task in one epoch."""

    line: Literal["call"] = "call"
    call: TapeCall
    epoch: int = 1
    number: int = 1
    reply: TapeReply


class StateLine(Record):
    """The state of a tool server before and after the calls of one task in one epoch.

    `calls` is the digest of these calls in their order, `tools` that of the server's tools.
    """

    line: Literal["state"] = "state"
    dataset: str
    task: str
    epoch: int = 1
    tools: str
    calls: str
    state: ServerState


TapeLine = Annotated[HeaderLine | ToolLine | CallLine | StateLine, Field(discriminator="line")]


class TapeUse(Record):
    """The tape of a run; `digest` is None while the run is recording it."""

    mode: TapeMode
    origin: TapeOrigin
    digest: str | None = None

    def same_use(self, other: "TapeUse | None") -> bool:
        """Whether a run with the other tape can continue this one; a recording can grow."""
        if other is None or (self.mode, self.origin) != (other.mode, other.origin):
            return False
        return self.mode == "record" or self.digest == other.digest
