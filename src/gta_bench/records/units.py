"""RunUnits: what a system did, delivered and used for one task in one epoch."""

from typing import Generic, Literal, TypeVar

from gta_bench.errors import format_count
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.base import Record
from gta_bench.records.calls import CallRecord
from gta_bench.records.digests import TaskDigests
from gta_bench.records.files import Deliverable
from gta_bench.records.steps import AnswerStep, Trace
from gta_bench.records.tool_servers import ServerState
from gta_bench.records.views import Displayed, shorten
from gta_bench.records.workflow import WorkflowTask

TaskT = TypeVar("TaskT", AtomicTask, WorkflowTask)
# How a model's reply ended, if it did not end normally (docs/concepts/stops.md).
StopKind = Literal["cut off", "refused", "context", "empty", "malformed call", "call as text"]


class Usage(Record):
    """What a unit used; `cost_usd` is None if no price is known.

    `input_tokens` are all that were sent, also those that the provider read from its cache.
    """

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    retries: int = 0
    seconds: float = 0.0
    cost_usd: float | None = None


class UpstreamPair(Record):
    """Prediction and reference as in an upstream file, with the paths of its machine."""

    trace: Trace
    gold: Trace


class Unit(Displayed, Record, Generic[TaskT]):
    """One task in one epoch: what the system did and delivered, or why that is unknown.

    With `failure`, the unit is unscored through no fault of the system. Without it, the system is
    responsible: `trace` is None if it made no prediction, and an empty answer without deliverables
    is judged like any other. `strays` are names in the workspace that are not readable files.
    `states` are those of the tool servers that declare one. `upstream` is set for predictions
    imported from upstream's files. `digests` identify what was asked and how it is scored; units
    read from a run always have them. `attempts` is the number of attempts (None if not recorded),
    and `usage` covers all of them. `stops` has an entry for every reply of the model, in this
    round, that did not end normally. `delivered` is False only for a task that imported results
    lack: it fails without being judged.
    """

    task: TaskT
    epoch: int = 1
    trace: Trace | None = None
    deliverables: tuple[Deliverable, ...] = ()
    inputs: tuple[Deliverable, ...] = ()
    strays: tuple[str, ...] = ()
    states: tuple[ServerState, ...] = ()
    delivered: bool = True
    failure: str | None = None
    upstream: UpstreamPair | None = None
    usage: Usage = Usage()
    calls: tuple[CallRecord, ...] = ()
    models: tuple[str, ...] = ()
    digests: TaskDigests | None = None
    stops: tuple[StopKind, ...] = ()
    attempts: int | None = None

    @property
    def answer(self) -> str:
        """The last answer to the user; ignores crash messages that upstream records as answers."""
        answers = [
            step.content
            for step in self.trace or ()
            if isinstance(step, AnswerStep) and step.error is None
        ]
        return answers[-1] if answers else ""

    def describe(self) -> str:
        """How it went: tool calls, files and the answer, or why there is no result."""
        if self.failure is not None:
            return f"{self.task.id}.{self.epoch}: no result, {shorten(self.failure)!r}"
        files = format_count(len(self.deliverables), "deliverable")
        return (
            f"{self.task.id}.{self.epoch}: {format_count(len(self.trace or ()), 'step')}, "
            f"{format_count(len(self.calls), 'tool call')}, {files}, "
            f"answer {shorten(self.answer)!r}"
        )


class AtomicUnit(Unit[AtomicTask]):
    """A unit of GTA-Atomic; its trace is scored."""


class WorkflowUnit(Unit[WorkflowTask]):
    """A unit of GTA-Workflow; its answer and deliverables are scored, even if empty."""

    trace: Trace = ()


UnitT = TypeVar("UnitT", AtomicUnit, WorkflowUnit)
