"""A GTA-Atomic task: tools, files, the reference dialogue and the accepted answers."""

from typing import Annotated, Literal

from pydantic import Field

from gta_bench.errors import format_count
from gta_bench.records.base import Record
from gta_bench.records.dialogue import AnswerTurn, CallTurn, Step, Turn, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.tools import ToolSpec
from gta_bench.records.views import Displayed, FrameRow, shorten

# The released references use one file name for every image that a tool produced.
PLACEHOLDER_IMAGE = "outputs/dummy_generated_image.jpg"


class WhitelistAnswer(Record):
    """The answer must match one alias of every group, and no alias of the blacklist."""

    kind: Literal["whitelist"] = "whitelist"
    whitelist: tuple[tuple[str, ...], ...]
    blacklist: tuple[tuple[str, ...], ...] | None = None


class FreeTextAnswer(Record):
    """Any of these texts is a correct answer; others are scored by similarity."""

    kind: Literal["free_text"] = "free_text"
    references: tuple[str, ...]


Answer = Annotated[WhitelistAnswer | FreeTextAnswer, Field(discriminator="kind")]


class AtomicTask(Displayed, Record):
    """One GTA-Atomic task. `answer` is None if the task produces an image."""

    id: str
    tools: tuple[ToolSpec, ...]
    attachments: tuple[Attachment, ...]
    dialogue: tuple[Turn, ...]
    answer: Answer | None

    @property
    def request(self) -> str:
        """The user's messages, joined by newlines."""
        return "\n".join(turn.content for turn in self.dialogue if isinstance(turn, UserTurn))

    @property
    def offered(self) -> dict[str, ToolSpec]:
        """The task's tools by name; the first definition counts if one is listed twice."""
        offered: dict[str, ToolSpec] = {}
        for tool in self.tools:
            offered.setdefault(tool.name, tool)
        return offered

    @property
    def steps(self) -> tuple[Step, ...]:
        """The assistant's turns in the reference dialogue, in order."""
        return tuple(turn for turn in self.dialogue if isinstance(turn, CallTurn | AnswerTurn))

    @property
    def calls(self) -> tuple[CallTurn, ...]:
        """The reference's tool calls, in order."""
        return tuple(turn for turn in self.dialogue if isinstance(turn, CallTurn))

    def describe(self) -> str:
        """Its request, and how much it offers and asks for."""
        return (
            f"{self.id}: {shorten(self.request)!r}, {format_count(len(self.tools), 'tool')}, "
            f"{format_count(len(self.attachments), 'file')}, "
            f"{format_count(len(self.steps), 'step')}"
        )

    def row(self) -> FrameRow:
        """The row of a table."""
        return {
            "task": self.id,
            "request": self.request,
            "tools": list(self.offered),
            "files": [file.path for file in self.attachments],
            "steps": len(self.steps),
            "answer": "image" if self.answer is None else self.answer.kind,
        }
