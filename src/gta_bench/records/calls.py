"""Tool calls of a run: what each gave back, what ran to make it, and what became of it."""

from typing import Literal

from gta_bench.records.base import Record
from gta_bench.records.steps import ReplyPart

Taped = Literal["replayed", "missing"]
Disturbed = Literal["corrupted", "fault"]
CallStatus = Literal["done", "error", "unavailable"]
# The backend of a call that the measured system states, and nobody else saw.
STATED = "as stated"


class CallRecord(Record):
    """One call as the executor saw it, or as imported results state it (`STATED`).

    `backend` and `jail` say what ran.

    `category` is that of a tool that another package brought; those of ours are known by name.
    `taped`: the reply came from a tape, or was missing on it. `control`: what was done to it on
    purpose.
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


class ToolResult(Record):
    """The parts that the agent sees, and which tool, backend and jail made them.

    `backend` names what really ran (`pydantic-monty 1.4.0`, `endpoint gpt-5-mini`), so that a
    result of a small offline model is never taken for one of a large one. `taped` and `control`
    say what stood between the tool and the agent.
    """

    parts: tuple[ReplyPart, ...]
    tool: str
    tool_version: str
    backend: str
    jail: str | None = None
    seconds: float = 0.0
    taped: Taped | None = None
    control: Disturbed | None = None

    @property
    def text(self) -> str:
        """The parts as one text: files as `[image](path)`, one part a line."""
        return "\n".join(
            part.content if part.type == "text" else f"[{part.type}]({part.content})"
            for part in self.parts
        )
