"""The interface of agents: a function from history and tools to one decision.

A history is what an agent sees when it decides: the files of a task and the turns so far.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field, TypeAdapter

from gta_bench.agents.prompts import render
from gta_bench.agents.published import PublishedTexts
from gta_bench.records.atomic import PLACEHOLDER_IMAGE, AtomicTask
from gta_bench.records.base import Record
from gta_bench.records.dialogue import AnswerTurn, CallTurn, ReplyTurn, Step, Turn, UserTurn
from gta_bench.records.files import Attachment
from gta_bench.records.run import Images
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, ReplyPart
from gta_bench.records.tools import FILE_TYPES, ToolSpec
from gta_bench.records.units import StopKind

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput
else:
    # Parsers and scripted agents work without the engine, which takes a second to import.
    ChatMessage = Any


class RefusedTurn(Record):
    """A reply of the agent that led to no result, and the feedback that it got."""

    turn: Literal["refused"] = "refused"
    reply: str
    feedback: str


MergedTurn = UserTurn | CallTurn | AnswerTurn | RefusedTurn | tuple[ReplyTurn, ...]
HistoryTurn = Annotated[
    UserTurn | CallTurn | AnswerTurn | ReplyTurn | RefusedTurn, Field(discriminator="turn")
]
_TURNS = TypeAdapter[tuple[HistoryTurn, ...]](tuple[HistoryTurn, ...])


class History(Record):
    """The turns before a decision; `last` marks the last decision that a task allows.

    In step mode the turns are the reference's, and `last` is its last assistant turn. In
    end-to-end mode they are the agent's own, and a call's `content` is the unchanged reply.
    `messages` is the agent's own dialogue as the provider sent it, starting with the request. It
    has the same content as the turns, and is empty in step mode.
    """

    task: str
    attachments: tuple[Attachment, ...] = ()
    turns: tuple[HistoryTurn, ...] = ()
    messages: tuple[ChatMessage, ...] = ()
    mode: Literal["step", "end-to-end"] = "step"
    last: bool = False

    @property
    def files(self) -> frozenset[str]:
        """Every path that exists for the agent: the task's files and those that tools returned."""
        given = {
            turn.content
            for turn in self.turns
            if isinstance(turn, ReplyTurn) and turn.type in FILE_TYPES
        }
        return frozenset(item.path for item in self.attachments) | given

    @property
    def position(self) -> int:
        """The number of replies before this one, regardless of the calls in them."""
        if self.messages:
            return sum(message.role == "assistant" for message in self.messages)
        return sum(isinstance(turn, CallTurn | AnswerTurn | RefusedTurn) for turn in self.turns)


def read_turns(turns: Iterable[Any]) -> tuple[HistoryTurn, ...]:
    """Read turns as earlier versions stored them in samples."""
    return _TURNS.validate_python(tuple(turns))


def make_step_histories(task: AtomicTask) -> tuple[History, ...]:
    """Return one history per assistant turn of the reference: everything before that turn.

    As upstream, thoughts and the text next to a call are left out: they reveal the reference's
    plan and name files by paths that no agent sees.
    """
    positions = [
        index for index, turn in enumerate(task.dialogue) if isinstance(turn, CallTurn | AnswerTurn)
    ]
    shown = tuple(_without_thought(turn) for turn in task.dialogue)
    return tuple(
        History(
            task=task.id,
            attachments=task.attachments,
            turns=shown[:position],
            last=position == positions[-1],
        )
        for position in positions
    )


def list_dataset_files(tasks: Iterable[AtomicTask]) -> frozenset[str]:
    """Return every file that upstream finds in the dataset's folder, of all tasks."""
    paths = {item.path for task in tasks for item in task.attachments}
    return frozenset(paths | {PLACEHOLDER_IMAGE})


def merge_replies(history: History) -> list[MergedTurn]:
    """Return the turns in order, with all parts of one call's result in one tuple."""
    merged: list[MergedTurn] = []
    for turn in history.turns:
        if not isinstance(turn, ReplyTurn):
            merged.append(turn)
        elif merged and isinstance(merged[-1], tuple):
            merged[-1] = (*merged[-1], turn)
        else:
            merged.append((turn,))
    return merged


def reply_text(replies: Sequence[ReplyTurn | ReplyPart]) -> str:
    """Return a tool's result as text: files as `[image](path)`, one part per line."""
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


def files_text(
    attachments: Sequence[Attachment], published: PublishedTexts | None = None
) -> str | None:
    """Return the message that lists the files for the agent; None if the task has none."""
    if not attachments:
        return None
    paths = ", ".join(f"`{item.path}`" for item in attachments)
    return render("files.md", paths=paths) if published is None else f"{published.files}{paths}"


DecidedStep = CallStep | AnswerStep | MalformedStep


@dataclass(frozen=True)
class Decision:
    """One reply: its first step, and the model output it was read from (None without a model).

    `more` has the other calls of the reply, in order. `stop` says how the reply ended, unless it
    ended normally; after `context` and `refused` the agent is not asked again.
    """

    step: DecidedStep
    output: "ModelOutput | None" = None
    more: tuple[CallStep, ...] = ()
    thought: str = ""
    stop: StopKind | None = None

    @property
    def calls(self) -> tuple[CallStep, ...]:
        """All calls of the reply, in order."""
        return (self.step, *self.more) if isinstance(self.step, CallStep) else ()


class Decide(Protocol):
    """Asks the model for one reply; a wrong reply becomes a step, never an exception."""

    async def __call__(self, history: History, tools: Sequence[ToolSpec]) -> Decision: ...


@dataclass(frozen=True)
class Setup:
    """Everything that an agent is created from.

    Without `model`, the agent uses the model that Inspect is evaluating. `image_source` returns
    the file or data URI of an attachment; only `images="attached"` needs it. `known_files` are
    paths that exist in addition to those of a history: upstream checks a call's files against the
    whole dataset. `references` has each task's reference steps, only for agents in
    `catalog.NEED_REFERENCES`. `published` has the published prompts, for `react-upstream`.
    """

    model: "Model | None" = None
    config: "GenerateConfig | None" = None
    images: Images = "path"
    image_source: Callable[[Attachment], str] | None = None
    known_files: frozenset[str] = frozenset()
    references: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    published: PublishedTexts | None = None


AgentFactory = Callable[[Setup], Decide]
