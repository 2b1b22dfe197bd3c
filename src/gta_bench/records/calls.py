"""Tool calls of a run: their results, their outcome, and the backend that ran."""

from typing import Literal

from gta_bench.records.base import Record
from gta_bench.records.steps import ReplyPart
from gta_bench.records.views import Displayed, shorten

Taped = Literal["replayed", "missing"]
Disturbed = Literal["corrupted", "fault"]
CallStatus = Literal["done", "error", "unavailable"]
# The backend of a call that only the measured system reports.
STATED = "as stated"


class CallRecord(Record):
    """One call as the executor saw it, or as imported results state it (`STATED`).

    `backend` and `jail` say what ran. `category` is set for tools of other packages; ours are known
    by name. `taped`: the reply came from a tape, or was missing on it. `control`: how a control
    changed the call.
    """

    tool: str
    status: CallStatus
    seconds: float
    message: str = ""
    tool_version: str = ""
    backend: str = ""
    jail: str | None = None
    taped: Taped | None = None
    control: Disturbed | None = None
    category: str | None = None


class ToolResult(Displayed, Record):
    """The parts that the agent sees, and the tool, backend and jail that produced them.

    `backend` names what really ran (`pydantic-monty 1.4.0`, `endpoint gpt-5-mini`), so that results
    of a small offline model are never mistaken for those of a large one. `taped` and `control` say
    whether a tape or a control changed the result.
    """

    parts: tuple[ReplyPart, ...]
    tool: str
    tool_version: str
    backend: str
    jail: str | None = None
    seconds: float = 0.0
    taped: Taped | None = None
    control: Disturbed | None = None

    def describe(self) -> str:
        """The tool and the start of its text."""
        return f"{self.tool}: {shorten(self.text)!r}"

    @property
    def text(self) -> str:
        """The parts as one text: one part per line, files as `[image](path)`."""
        return "\n".join(
            part.content if part.type == "text" else f"[{part.type}]({part.content})"
            for part in self.parts
        )
