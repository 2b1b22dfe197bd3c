"""The ceiling of a judge: what it gives to work that is known to be right, and known to be wrong.

Rates are 0 to 1, unless they are named after a score: Leaf SR and Root SR are 0 to 100.
"""

from typing import Final, Literal

from pydantic import AwareDatetime

from gta_bench.records.base import Record
from gta_bench.records.statistics import Interval

# What a group of leaves has in common: the kind of file that they are about, what their checks look
# at, or both.
CeilingBy = Literal["all", "file", "leaf", "file and leaf"]
# With fewer tasks, nobody knows how much a judge errs: all right in 4 tasks says little.
LEAST_TASKS: Final = 10
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
    tasks: int
    broken: int
    sensitivity: Interval | None
    intact: int
    specificity: Interval | None


class TaskErrors(Record):
    """One task of a ceiling: `found` of its `broken` leaves, `passed` of its `intact` ones."""

    task: str
    found: int
    broken: int
    passed: int
    intact: int


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
