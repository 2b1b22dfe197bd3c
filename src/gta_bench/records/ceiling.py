"""The ceiling of a judge: what it gives to work that is known to be right, and known to be wrong.

Rates are 0 to 1, unless they are named after a score: Leaf SR and Root SR are 0 to 100.
"""

from typing import Final, Literal, Self

from pydantic import AwareDatetime, NonNegativeInt, model_validator

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval

# What a group of leaves has in common: the kind of file that they are about, what their checks look
# at, or both.
CeilingBy = Literal["all", "file", "leaf", "file and leaf"]
# With fewer tasks, nobody knows how much a judge errs: all right in 4 tasks says little.
LEAST_TASKS: Final = 10
ROUNDING_ERROR: Final = 1e-6
# Why a score cannot be corrected. `few`: the ceiling has fewer tasks than that. `blind`: the judge
# does not tell broken leaves from intact ones. `apart`: no true score explains how many leaves the
# judge passed.
CorrectionProblem = Literal["few", "blind", "apart"]


class ErrorRates(Record):
    """How often a judge is right about a group of leaves whose truth is known.

    `sensitivity` is the share of `broken` leaves that the judge fails, `specificity` the share of
    `intact` leaves that it passes; None if there is no such leaf. `tasks` have at least one leaf.
    """

    by: CeilingBy
    name: str
    tasks: NonNegativeInt
    broken: NonNegativeInt
    sensitivity: Interval | None
    intact: NonNegativeInt
    specificity: Interval | None

    @model_validator(mode="after")
    def _check_rates(self) -> Self:
        for rate, leaves in ((self.sensitivity, self.broken), (self.specificity, self.intact)):
            if (rate is None) != (leaves == 0):
                raise ValueError("a rate without leaves, or leaves without a rate")
            if rate and not 0 <= rate.low <= rate.estimate <= rate.high <= 1:
                raise ValueError("a rate that is not between 0 and 1, or not within its interval")
        return self


class TaskErrors(Record):
    """One task of a ceiling: `found` of its `broken` leaves, `passed` of its `intact` ones."""

    task: str
    found: NonNegativeInt
    broken: NonNegativeInt
    passed: NonNegativeInt
    intact: NonNegativeInt

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.found > self.broken or self.passed > self.intact:
            raise ValueError("more leaves found than broken, or more passed than intact")
        return self


class Suspect(Record):
    """A leaf that no verdict passed in any right work, so evidence or prompt may be at fault.

    `kinds` are the kinds of file that it is about, `type` is what its checks look at, and `reason`
    is what the judge said about one of the `golds`.
    """

    task: str
    leaf: str
    says: str
    kinds: tuple[str, ...]
    type: str
    golds: int
    reason: str


class GoldScores(Record):
    """What right work gets from the judge: the scores that a perfect system would have."""

    leaf_sr: Interval | None
    root_score: Interval | None
    root_sr: Interval | None


class Ceiling(Record):
    """`ceiling.json`: a judge measured on `works` whose truth is known.

    `digest` identifies the judge's full configuration. `unknown` leaves may fail because others
    that they need are broken, and are left out; so are the `unscored` ones. `rows` has what a
    correction of scores needs.
    """

    format: Literal[1] = 1
    created: AwareDatetime
    judge: str
    digest: str
    repeats: int
    leaf_threshold: float
    root_threshold: float
    cost_usd: float | None
    works: int
    unknown: int
    unscored: int
    gold: GoldScores
    groups: tuple[ErrorRates, ...]
    suspects: tuple[Suspect, ...]
    rows: tuple[TaskErrors, ...]

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        if len({row.task for row in self.rows}) < len(self.rows):
            raise ValueError("a task has two rows")
        if not self.groups or self.groups[0].by != "all":
            raise ValueError("the first group is not the one over all leaves")
        sums = {name: sum(getattr(row, name) for row in self.rows)
                for name in ("found", "broken", "passed", "intact")}  # fmt: skip
        whole = self.overall
        if (whole.tasks, whole.broken, whole.intact) != (
            len(self.rows), sums["broken"], sums["intact"]
        ):  # fmt: skip
            raise ValueError("the rows and the first group count different leaves")
        for rate, hits, leaves in (
            (whole.sensitivity, sums["found"], whole.broken),
            (whole.specificity, sums["passed"], whole.intact),
        ):
            if rate and abs(rate.estimate - hits / leaves) > ROUNDING_ERROR:
                raise ValueError("the rows and the first group have different rates")
        return self

    @property
    def overall(self) -> ErrorRates:
        """The rates over all leaves."""
        return self.groups[0]


class CeilingScore(Record):
    """A run's Leaf SR by a judge, beside the judge's ceiling.

    `judged` of its `leaves` were decided by the judge; checks, and rules for what was not
    delivered, decided the others. `corrected` is None if `problem` says why, or if `other` names
    what differs between the judge of the run and the judge of the ceiling. `untested` are kinds of
    delivered files that no task of the ceiling delivers.
    """

    judge: str
    leaf_sr: float | None
    leaves: int
    judged: int
    gold: GoldScores
    sensitivity: Interval | None
    specificity: Interval | None
    corrected: Interval | None = None
    problem: CorrectionProblem | None = None
    other: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
