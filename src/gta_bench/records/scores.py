"""Scores of GTA-Atomic: counts for each task, percentages over all tasks, and effects of controls.

Counts are made per task and pooled later, so that a subset, a shard or a resampled set of tasks
is scored by the same addition. Percentages are 0 to 100 and not rounded; None means that there
was nothing to measure.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, runtime_checkable

from typing_extensions import TypeVar

from gta_bench.records.base import Record, Rows
from gta_bench.records.failures import Failure
from gta_bench.records.units import StopKind, Usage
from gta_bench.records.views import FrameRow, Tabular, list_numbers


class Disturbance(Record):
    """Calls of one unit that a tape or a control affected.

    `recovered`: faults after which the system made the same call again and got a reply.
    `distracted`: calls of tools that the task does not list.
    """

    replayed: int = 0
    missing: int = 0
    corrupted: int = 0
    faults: int = 0
    recovered: int = 0
    distracted: int = 0


class TaskEffect(Record):
    """One unit with and without a control; values are parts of the strict AnsAcc+I, 0 to 1."""

    task: str
    epoch: int
    plain: float
    controlled: float
    disturbance: Disturbance

    @property
    def solved(self) -> tuple[bool, bool]:
        """Whether it is solved without the control, and with it."""
        return self.plain == 1, self.controlled == 1

    @property
    def kept(self) -> bool:
        """Whether it is solved both without and with the control."""
        return self.solved == (True, True)

    @property
    def lost(self) -> bool:
        """Whether it is solved only without the control."""
        return self.solved == (True, False)

    @property
    def hit(self) -> bool:
        """Whether the control affected the unit."""
        did = self.disturbance
        return bool(did.corrupted or did.faults or did.distracted)


class ControlEffect(Record):
    """Two runs of one system, unit by unit: what is solved without a control and with it.

    Solved means a strict value of 1. `lost` units are solved only without it, `won` only with it.
    `hit` units are affected by it; of these, `hit_solved_plain` are solved without it and
    `hit_kept` both without and with it.
    """

    units: int
    solved_plain: int
    solved_controlled: int
    kept: int
    lost: int
    won: int
    hit: int
    hit_solved_plain: int
    hit_kept: int
    disturbance: Disturbance
    tasks: tuple[TaskEffect, ...]


Category = Literal["perception", "operation", "logic", "creativity"]


class StepCounts(Record):
    """Step mode, one task: hits, and the totals they are divided by."""

    inst_hits: int
    inst_total: int
    call_total: int
    tool_hits: int
    arg_hits: int
    answer_total: int
    answer_sum: float
    tool_call: int
    tool_call_error: int


class StrictStepCounts(StepCounts):
    """Step mode, one task, with the counts that only the strict scoring uses."""

    predicted: bool
    arg_typed_sum: float
    malformed: int


class StepScores(Record):
    """Step mode over all tasks. `n` of `n_tasks` tasks had a prediction."""

    inst_acc: float | None
    tool_acc: float | None
    arg_acc: float | None
    summ_acc: float | None
    tool_call: int
    tool_call_error: int
    n: int
    n_tasks: int


class StrictStepScores(StepScores):
    """Step mode, strict: arguments are compared by type, and malformed replies are counted."""

    arg_typed: float | None
    malformed: int


class CategoryCounts(Record):
    """Calls of one tool category in one task."""

    gold: int = 0
    predicted: int = 0
    hits: int = 0


class EndToEndCounts(Record):
    """End-to-end mode, one task. `image_sum` is added to the answers for AnsAcc+I."""

    answer_total: int
    answer_sum: float
    image_sum: float
    answer_i_total: int
    categories: Mapping[Category, CategoryCounts]
    tool_call: int
    tool_call_error: int


class StrictEndToEndCounts(EndToEndCounts):
    """End-to-end mode, one task, with the counts that only the strict scoring uses."""

    predicted: bool
    malformed: int


class EndToEndScores(Record):
    """End-to-end mode over all tasks. `n` of `n_tasks` tasks had a prediction."""

    ans_acc: float | None
    ans_acc_i: float | None
    p_f1: float | None
    o_f1: float | None
    l_f1: float | None
    c_f1: float | None
    tool_call: int
    tool_call_error: int
    n: int
    n_tasks: int


class StrictEndToEndScores(EndToEndScores):
    """End-to-end mode, strict: malformed replies are counted."""

    malformed: int


class UnscoredUnit(Record):
    """A unit that has no score through no fault of the system."""

    task: str
    epoch: int
    cause: str


# The counts that tables have, in the order of their columns.
COUNTS: Final = (
    *("inst_hits", "inst_total", "call_total", "tool_hits", "arg_hits", "arg_typed_sum"),
    *("answer_total", "answer_sum", "image_sum", "answer_i_total", "malformed"),
)
COMPAT_COUNTS: Final = tuple(name for name in COUNTS if name not in ("arg_typed_sum", "malformed"))


class UnitScore(Record):
    """The counts of one unit for both scorings; `compat` is None if upstream drops it."""

    task: str
    epoch: int
    strict: StrictStepCounts | StrictEndToEndCounts
    compat: StepCounts | EndToEndCounts | None
    disturbance: Disturbance = Disturbance()

    def counts(self) -> dict[str, float | None]:
        """The counts of both scorings as columns of a table; None where a mode has none."""
        return {
            **{f"strict_{name}": getattr(self.strict, name, None) for name in COUNTS},
            **{f"compat_{name}": getattr(self.compat, name, None) for name in COMPAT_COUNTS},
        }


class CountBlock(NamedTuple):
    """The strict counts of several units: `counts` has an array for each, in the order of units."""

    tasks: Any
    epochs: Any
    counts: Any


@runtime_checkable
class CountBlocks(Protocol):
    """Scores of units whose counts can be read without a record of each."""

    def read_counts(self, *, categories: bool) -> Iterator[CountBlock]:
        """Yield the counts of all units, with those of tool categories only if asked for."""


class ToolUse(Record):
    """The outcomes of all calls of one tool in a run."""

    tool: str
    done: int
    error: int
    unavailable: int
    seconds: float
    backends: tuple[str, ...]


# The percentages of both modes, in the order of a line.
PERCENTAGES: Final = (
    *("inst_acc", "tool_acc", "arg_acc", "summ_acc"),
    *("ans_acc", "ans_acc_i", "p_f1", "o_f1", "l_f1", "c_f1"),
)


class Measured(Tabular, Record):
    """A user's own metric over a run: the mean over the `n` of `n_units` units with a value.

    `code` has the digests of the metric and of what it uses, by name; None if it has no digest.
    """

    name: str
    value: float | None
    n: int
    n_units: int
    units: Mapping[str, float]
    code: Mapping[str, str] | None = None

    def describe(self) -> str:
        """The mean, and how many units have a value."""
        return f"{list_numbers([(self.name, self.value)])} over {self.n} of {self.n_units} units"

    def rows(self) -> list[FrameRow]:
        """A row for each unit that has a value."""
        return [
            {"task": task, "epoch": int(epoch), "metric": self.name, "value": value}
            for unit, value in self.units.items()
            for task, _, epoch in [unit.rpartition(".")]
        ]


Strict_co = TypeVar(
    "Strict_co",
    bound=StrictStepScores | StrictEndToEndScores,
    default=StrictStepScores | StrictEndToEndScores,
    covariant=True,
)
Compat_co = TypeVar(
    "Compat_co",
    bound=StepScores | EndToEndScores,
    default=StepScores | EndToEndScores,
    covariant=True,
)


class RunScores(Tabular, Record, Generic[Strict_co, Compat_co]):
    """`scores.json`: both scorings of a run. It can be ranked only if `n` equals `n_units`.

    The two types are those of its mode, where the mode is known.

    `usage` covers all `attempts` (None if attempts were not recorded); `retried` units had more
    than one. `models` are the names that the provider returned. `not_on_tape` has a line for every
    call that a replayed tape had no reply for, with the nearest recorded call. `failures` has the
    first cause of every failed step (end to end: task). `stops` counts the model's replies that did
    not end normally, by how they ended.
    """

    scoring_version: int
    mode: Literal["step", "end-to-end"]
    similarity: str
    comparable: bool
    n: int
    n_units: int
    strict: Strict_co
    compat: Compat_co
    usage: Usage
    attempts: int | None = None
    retried: int = 0
    models: tuple[str, ...]
    tools: tuple[ToolUse, ...] = ()
    not_on_tape: tuple[str, ...] = ()
    stops: Mapping[StopKind, int] = {}
    units: Rows[UnitScore]
    unscored: tuple[UnscoredUnit, ...]
    failures: Rows[Failure] = ()

    @property
    def missing(self) -> int:
        """Units without a prediction; strict counts them as failed, compat leaves them out."""
        return self.n - self.strict.n

    @property
    def complete(self) -> bool:
        """Whether every unit has a prediction and a score."""
        return self.strict.n == self.n_units

    @property
    def causes(self) -> dict[tuple[str, int], list[str]]:
        """The first causes of what failed, by task and epoch."""
        found: dict[tuple[str, int], list[str]] = {}
        for failure in self.failures:
            found.setdefault((failure.task, failure.epoch), []).append(failure.cause)
        return found

    def describe(self) -> str:
        """Both scorings, and how many units have a score."""
        parts = []
        for name, scores in (("strict", self.strict), ("compat", self.compat)):
            values = scores.model_dump(include={*PERCENTAGES})
            parts.append(f"{name} {list_numbers(values.items())}")
        return f"{self.mode}, {self.n} of {self.n_units} units: {'; '.join(parts)}"

    def rows(self) -> list[FrameRow]:
        """A row for each unit, with the counts of both scorings; None if it has no score."""
        causes = self.causes
        rows: list[FrameRow] = [
            {
                "task": unit.task,
                "epoch": unit.epoch,
                "failure": None,
                "first_causes": causes.get((unit.task, unit.epoch), []),
                **unit.counts(),
            }
            for unit in self.units
        ]
        return rows + [
            {"task": one.task, "epoch": one.epoch, "failure": one.cause, "first_causes": []}
            for one in self.unscored
        ]
