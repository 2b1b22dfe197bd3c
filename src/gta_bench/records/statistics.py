"""Results of statistics: estimates with intervals, tests, ranks and run-to-run variance."""

from typing import Literal, Self

from gta_bench.records.base import Record

IntervalMethod = Literal[
    "wilson",
    "tango",
    "student",
    "newcombe",
    "mover",
    "jackknife",
    "prediction-powered",
    "labels-only",
    "rogan-gladen",
]
TestMethod = Literal["two-proportions"]


class Interval(Record):
    """An estimate with its confidence interval at `level`.

    `n` is the number of independent observations: tasks, never their leaves. `labels-only` uses
    only people's labels, if they cannot correct the judge. `rogan-gladen` corrects a rate for the
    judge's errors on work whose truth is known.
    """

    estimate: float
    low: float
    high: float
    level: float
    n: int
    method: IntervalMethod

    def scaled(self, factor: float) -> "Interval":
        """A copy on another scale, such as percent."""
        ends = {name: factor * getattr(self, name) for name in ("estimate", "low", "high")}
        return self.model_copy(update=ends)


class DifferenceTest(Record):
    """A test of whether two systems differ; `difference` is the first minus the second."""

    difference: float
    p_value: float
    n: int
    method: TestMethod


class Difference(Record):
    """Two systems on the same tasks, the first minus the second; test and interval agree.

    `effective` is the equivalent number of tasks with equal weight, and `detectable` the smallest
    difference that they detect with 80 % power.
    """

    interval: Interval
    p_value: float
    effective: float
    detectable: float


class Bounds(Record):
    """A score if all missing tasks fail, and if all of them succeed."""

    missing: int
    low: float
    high: float

    def scaled(self, factor: float) -> Self:
        """A copy on another scale, such as percent."""
        return self.model_copy(update={"low": factor * self.low, "high": factor * self.high})


class Envelope(Bounds):
    """A difference in the worst and in the best case for the first of two systems.

    `p_value` is the largest that the missing tasks allow, 1 if they can reverse the sign. `tipping`
    is how many of them must go against the leading system to reverse it; None if all are not
    enough.
    """

    p_value: float
    tipping: int | None


class RankInterval(Record):
    """A rank (1 is best) with its confidence interval."""

    rank: int
    low: int
    high: int


class Standing(Record):
    """A system among others: its rank, and its group of statistically equal systems.

    A group contains its best system and all that no test separates from it; the best group is
    first.
    """

    group: int
    rank: RankInterval


class RunVariance(Record):
    """How much of a score is chance, from several runs of the same tasks.

    `between_tasks` and `within_tasks` are variances of one run of one task, `run_sd` is the
    standard deviation of the headline score between runs, `unstable` the share of tasks whose value
    differs between runs.
    """

    runs: int
    tasks: int
    mean: float
    run_sd: float
    within_tasks: float
    between_tasks: float
    unstable: float


VarianceSource = Literal[
    "task",
    "model",
    "agent",
    "task x model",
    "task x agent",
    "model x agent",
    "task x model x agent",
    "run",
]


class VarianceComponent(Record):
    """A part of the variance of one score: of a task drawn at random, by any system of a design.

    All parts together are the whole variance, of which `share` is this one's. `with_runs` says that
    it includes the variance between runs, which one epoch cannot separate.
    """

    source: VarianceSource
    variance: Interval
    share: float
    with_runs: bool = False
