"""What a tool gave back, and what ran to make it."""

from gta_bench.records.base import Record
from gta_bench.records.calls import Disturbed, Taped
from gta_bench.records.steps import ReplyPart


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
