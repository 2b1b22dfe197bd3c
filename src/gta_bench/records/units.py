"""What a run has of one task in one epoch: what the system did, delivered and took."""

from typing import Generic, Literal, TypeVar

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.base import Record
from gta_bench.records.calls import CallRecord
from gta_bench.records.digests import TaskDigests
from gta_bench.records.files import Deliverable
from gta_bench.records.steps import AnswerStep, Trace
from gta_bench.records.workflow import WorkflowTask

TaskT = TypeVar("TaskT", AtomicTask, WorkflowTask)
# How a model's reply ended where it is not an ordinary one (docs/concepts/stops.md).
StopKind = Literal["cut off", "refused", "context", "empty", "malformed call", "call as text"]


class Usage(Record):
    """What a unit took; `cost_usd` is None where no price is known."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    retries: int = 0
    seconds: float = 0.0
    cost_usd: float | None = None


class UpstreamPair(Record):
    """Prediction and reference as an upstream file has them, with the paths of its machine."""

    trace: Trace
    gold: Trace


class Unit(Record, Generic[TaskT]):
    """One task in one epoch: what the system did and delivered, or why nothing is known.

    With `failure` the unit is unscored through no fault of the system. Without it everything is
    the system's own: `trace` is None where it made no prediction, and an empty answer without any
    deliverable is judged like any other. `strays` are names in the workspace that are no readable
    files. `upstream` is set for predictions that were imported from upstream's files. `digests`
    say what was asked and how it is scored; units that were read from a run always have them.
    `attempts` is how often it was tried, and `usage` is what all attempts took; None where that
    was not recorded.
    `stops` has an entry for every reply of the model, in this round, that did not end in the
    ordinary way.
    Only a task that imported results lack is not `delivered`: it fails, and no judge is asked.
    """

    task: TaskT
    epoch: int = 1
    trace: Trace | None = None
    deliverables: tuple[Deliverable, ...] = ()
    inputs: tuple[Deliverable, ...] = ()
    strays: tuple[str, ...] = ()
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
        """The last answer to the user; upstream's crash texts that pose as one are none."""
        answers = [
            step.content
            for step in self.trace or ()
            if isinstance(step, AnswerStep) and step.error is None
        ]
        return answers[-1] if answers else ""


class AtomicUnit(Unit[AtomicTask]):
    """A unit of GTA-Atomic; its result is its trace."""


class WorkflowUnit(Unit[WorkflowTask]):
    """A unit of GTA-Workflow; its result are its answer and its deliverables, even if empty."""

    trace: Trace = ()


UnitT = TypeVar("UnitT", AtomicUnit, WorkflowUnit)
