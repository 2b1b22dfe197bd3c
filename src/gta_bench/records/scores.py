"""Scores of GTA-Atomic: counts for each task, percentages over all tasks, and effects of controls.

Counts are made per task and pooled later, so that a subset, a shard or a resampled set of tasks
is scored by the same addition. Percentages are 0 to 100 and not rounded; None means that there
was nothing to measure.
"""

from collections.abc import Mapping
from typing import Literal

from gta_bench.records.base import Record
from gta_bench.records.failures import Failure
from gta_bench.records.units import StopKind, Usage


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


class UnitScore(Record):
    """The counts of one unit for both scorings; `compat` is None if upstream drops it."""

    task: str
    epoch: int
    strict: StrictStepCounts | StrictEndToEndCounts
    compat: StepCounts | EndToEndCounts | None
    disturbance: Disturbance = Disturbance()


class ToolUse(Record):
    """The outcomes of all calls of one tool in a run."""

    tool: str
    done: int
    error: int
    unavailable: int
    seconds: float
    backends: tuple[str, ...]


class Measured(Record):
    """A user's own metric over a run: the mean over the `n` of `n_units` units with a value."""

    name: str
    value: float | None
    n: int
    n_units: int
    units: Mapping[str, float]


class RunScores(Record):
    """`scores.json`: both scorings of a run. It can be ranked only if `n` equals `n_units`.

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
    strict: StrictStepScores | StrictEndToEndScores
    compat: StepScores | EndToEndScores
    usage: Usage
    attempts: int | None = None
    retried: int = 0
    models: tuple[str, ...]
    tools: tuple[ToolUse, ...] = ()
    not_on_tape: tuple[str, ...] = ()
    stops: Mapping[StopKind, int] = {}
    units: tuple[UnitScore, ...]
    unscored: tuple[UnscoredUnit, ...]
    failures: tuple[Failure, ...] = ()

    @property
    def missing(self) -> int:
        """Units without a prediction; strict counts them as failed, compat leaves them out."""
        return self.n - self.strict.n

    @property
    def complete(self) -> bool:
        """Whether every unit has a prediction and a score."""
        return self.strict.n == self.n_units
