"""A tape: every tool call of a run with what came of it, one line each.

A line is a whole record of its own, so a tape can be read, grepped and compared line by line, and
what a killed recording leaves is a shorter tape.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gta_bench.records.base import Record
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import ToolSpec

TapeMode = Literal["record", "replay", "replay-else-live"]
TapeOrigin = Literal["live", "reference"]


class TapeCall(Record):
    """What a reply is found by: the place of the call, and all that the reply depends on.

    `arguments` lack what equals the tool's defaults; `files` has the digest of every file of the
    workspace that the arguments name.
    """

    dataset: str
    task: str
    tool: str
    arguments: Mapping[str, JsonValue] = {}
    files: Mapping[str, str] = {}


class TapeFile(Record):
    """A file that a call wrote, kept by its content; `replaced` where it overwrote one."""

    path: str
    sha256: str
    replaced: bool = False


class DoneReply(Record):
    """A result; see `ToolResult`."""

    type: Literal["done"] = "done"
    parts: tuple[ReplyPart, ...]
    files: tuple[TapeFile, ...] = ()
    tool_version: str
    backend: str
    jail: str | None = None
    seconds: float = 0.0


class ErrorReply(Record):
    """The words of a `ToolError`."""

    type: Literal["error"] = "error"
    message: str


class UnavailableReply(Record):
    """The words of a `ToolUnavailable`."""

    type: Literal["unavailable"] = "unavailable"
    reason: str
    mend: str


TapeReply = Annotated[DoneReply | ErrorReply | UnavailableReply, Field(discriminator="type")]


class HeaderLine(Record):
    """The first line: what the tape is of, and whether tools or a reference gave the replies."""

    line: Literal["tape"] = "tape"
    format: Literal[1] = 1
    dataset: str
    origin: TapeOrigin


class ToolLine(Record):
    """A tool as it was offered, so that a replay needs no tool; the newest of a name holds."""

    line: Literal["tool"] = "tool"
    spec: ToolSpec


class CallLine(Record):
    """One reply. `number` counts the equal calls of one task in one epoch."""

    line: Literal["call"] = "call"
    call: TapeCall
    epoch: int = 1
    number: int = 1
    reply: TapeReply


TapeLine = Annotated[HeaderLine | ToolLine | CallLine, Field(discriminator="line")]


class TapeUse(Record):
    """The tape of a run; `digest` is None as long as the run is still recording it."""

    mode: TapeMode
    origin: TapeOrigin
    digest: str | None = None

    def same_use(self, other: "TapeUse | None") -> bool:
        """Whether a run with the other one continues this one; a recording grows."""
        if other is None or (self.mode, self.origin) != (other.mode, other.origin):
            return False
        return self.mode == "record" or self.digest == other.digest
