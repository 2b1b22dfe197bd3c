"""What every agent is: a function from history and tools to one decision."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gta_bench.agents.history import History
from gta_bench.agents.published import PublishedTexts
from gta_bench.records.dialogue import Step
from gta_bench.records.files import Attachment
from gta_bench.records.run import Images
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import StopKind

if TYPE_CHECKING:
    from inspect_ai.model import GenerateConfig, Model, ModelOutput

DecidedStep = CallStep | AnswerStep | MalformedStep


@dataclass(frozen=True)
class Decision:
    """One reply: its first step, and the model's output it was read from (None without a model).

    `more` are the further calls of the reply, in declared order. `stop` says how the reply ended
    where it is not an ordinary one; after `context` and `refused` the agent is asked no more.
    """

    step: DecidedStep
    output: "ModelOutput | None" = None
    more: tuple[CallStep, ...] = ()
    thought: str = ""
    stop: StopKind | None = None

    @property
    def calls(self) -> tuple[CallStep, ...]:
        """All calls of the reply, in declared order."""
        return (self.step, *self.more) if isinstance(self.step, CallStep) else ()


class Decide(Protocol):
    """Asks the model for one reply; what a model says wrong is a step, never an exception."""

    async def __call__(self, history: History, tools: Sequence[ToolSpec]) -> Decision: ...


@dataclass(frozen=True)
class Setup:
    """What an agent is made from.

    `model` None means the model that Inspect is evaluating. `image_source` gives the file or
    data URI of an attachment; only `images="attached"` needs it. `known_files` are paths that
    exist beside those of a history: upstream checks a call's files against the whole dataset.
    `references` holds each task's reference steps, for agents of `catalog.NEED_REFERENCES` alone.
    `published` is for `react-upstream`: the published words, in place of our own.
    """

    model: "Model | None" = None
    config: "GenerateConfig | None" = None
    images: Images = "path"
    image_source: Callable[[Attachment], str] | None = None
    known_files: frozenset[str] = frozenset()
    references: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    published: PublishedTexts | None = None


AgentFactory = Callable[[Setup], Decide]
