"""What an agent knows when it decides: the files of a task and the turns so far."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from gta_bench.agents.prompts import render
from gta_bench.agents.published import PublishedTexts
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask
from gta_bench.records.base import Record
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, Turn, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.steps import ReplyPart
from gta_bench.records.tools import FILE_TYPES


def files_text(
    attachments: Sequence[Attachment], published: PublishedTexts | None = None
) -> str | None:
    """The message that tells the agent its files; None where a task has none."""
    if not attachments:
        return None
    paths = ", ".join(f"`{item.path}`" for item in attachments)
    return render("files.md", paths=paths) if published is None else f"{published.files}{paths}"


if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage
else:
    # Parsers and scripted agents are had without the engine, which takes a second to import.
    ChatMessage = Any

_Mode = Literal["step", "end-to-end"]


class RefusedTurn(Record):
    """A reply of the agent that led to no result, and what it was told about it."""

    turn: Literal["refused"] = "refused"
    reply: str
    told: str


Said = UserTurn | CallTurn | AnswerTurn | RefusedTurn | tuple[ReplyTurn, ...]
HistoryTurn = Annotated[
    UserTurn | CallTurn | AnswerTurn | ReplyTurn | RefusedTurn, Field(discriminator="turn")
]


_TURNS = TypeAdapter[tuple[HistoryTurn, ...]](tuple[HistoryTurn, ...])


class History(Record):
    """The turns before a decision; `last` marks the last decision that a task allows.

    In step mode the turns are the reference's, and `last` is its last assistant turn. In
    end-to-end mode they are the agent's own, and a call's `content` is its reply as it came.
    `messages` are the agent's own dialogue as the provider gave it, from the request on; where
    nobody kept them, as in step mode, there are none. The turns tell the same.
    """

    task: str
    attachments: tuple[Attachment, ...] = ()
    turns: tuple[HistoryTurn, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    mode: _Mode = "step"
    last: bool = False

    @property
    def files(self) -> frozenset[str]:
        """Every path that exists for the agent: the task's files and those that tools gave."""
        given = {
            turn.content
            for turn in self.turns
            if isinstance(turn, ReplyTurn) and turn.type in FILE_TYPES
        }
        return frozenset(item.path for item in self.attachments) | given

    @property
    def position(self) -> int:
        """How many replies came before this one, however many calls they had."""
        if self.messages:
            return sum(message.role == "assistant" for message in self.messages)
        return sum(isinstance(turn, CallTurn | AnswerTurn | RefusedTurn) for turn in self.turns)


def read_turns(turns: Iterable[Any]) -> tuple[HistoryTurn, ...]:
    """Turns in the form in which samples of earlier versions keep them."""
    return _TURNS.validate_python(tuple(turns))


def step_histories(task: AtomicTask) -> tuple[History, ...]:
    """One history per assistant turn of the reference: everything that stands before it.

    Thoughts, and texts beside a call, stay out as they do upstream: they give the reference's
    plan away and name files by paths that no agent sees.
    """
    places = [
        index for index, turn in enumerate(task.dialogue) if isinstance(turn, CallTurn | AnswerTurn)
    ]
    shown = tuple(_without_thought(turn) for turn in task.dialogue)
    return tuple(
        History(
            task=task.id,
            attachments=task.attachments,
            turns=shown[:place],
            last=place == places[-1],
        )
        for place in places
    )


def dataset_files(tasks: Iterable[AtomicTask]) -> frozenset[str]:
    """Every file that upstream finds in the dataset's folder, whichever task it belongs to."""
    paths = {item.path for task in tasks for item in task.attachments}
    return frozenset(paths | {PLACEHOLDER_IMAGE})


def merge_replies(history: History) -> list[Said]:
    """The turns in order; what one call gave back, in several parts, comes as one tuple."""
    merged: list[Said] = []
    for turn in history.turns:
        if not isinstance(turn, ReplyTurn):
            merged.append(turn)
        elif merged and isinstance(merged[-1], tuple):
            merged[-1] = (*merged[-1], turn)
        else:
            merged.append((turn,))
    return merged


def reply_text(replies: Sequence[ReplyTurn | ReplyPart]) -> str:
    """A tool's result as text: files as `[image](path)`, several parts one per line."""
    return "\n".join(
        f"[{reply.type}]({reply.content})" if reply.type in FILE_TYPES else reply.content
        for reply in replies
    )


def _without_thought(turn: Turn) -> Turn:
    if isinstance(turn, CallTurn):
        return turn.model_copy(update={"thought": None, "content": None})
    if isinstance(turn, AnswerTurn):
        return turn.model_copy(update={"thought": None})
    return turn
