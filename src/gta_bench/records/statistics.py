"""What a statistic says: an estimate with its interval, a test, a rank, what luck explains."""

from typing import Literal, Self

from gta_bench.records.base import Record

IntervalMethod = Literal[
    "wilson",
    "tango",
    "student",
    "newcombe",
    "jackknife",
    "prediction-powered",
    "labels-only",
]
TestMethod = Literal["two-proportions"]


class Interval(Record):
    """An estimate and where the true value lies with confidence `level`.

    `n` is the number of independent things behind it: tasks, never their leaves. `labels-only` is
    that of people's labels where they cannot correct the judge.
    """

    estimate: float
    low: float
    high: float
    level: float
    n: int
    method: IntervalMethod

    def scaled(self, factor: float) -> "Interval":
        """The same on another scale, such as percent."""
        ends = {name: factor * getattr(self, name) for name in ("estimate", "low", "high")}
        return self.model_copy(update=ends)


class DifferenceTest(Record):
    """Whether two systems differ: the first minus the second, and how likely that is by chance."""

    difference: float
    p_value: float
    n: int
    method: TestMethod


class Difference(Record):
    """Two systems on the same tasks, the first minus the second; test and interval agree.

    `effective` is as how many tasks of equal weight these are worth, and `detectable` the smallest
    difference that such tasks show in four of five cases.
    """

    interval: Interval
    p_value: float
    effective: float
    detectable: float


class Bounds(Record):
    """A score if all that is missing fails, and if all of it succeeds; `missing` counts tasks."""

    missing: int
    low: float
    high: float

    def scaled(self, factor: float) -> Self:
        """The same on another scale, such as percent."""
        return self.model_copy(update={"low": factor * self.low, "high": factor * self.high})


class Envelope(Bounds):
    """A difference in the worst and in the best case for the first of two systems.

    `p_value` is the largest that what is missing allows, 1 if it can turn the sign. `tipping` of
    the missing tasks turn it if they go against the system that is ahead; None if all do not.
    """

    p_value: float
    tipping: int | None


class RankInterval(Record):
    """A rank (1 is best) and between which ranks it lies with the confidence asked for."""

    rank: int
    low: int
    high: int


class Standing(Record):
    """A system among others: its rank and bounds, and the group it cannot be told apart in.

    A group holds its best system and all that no test tells from that one, best group first.
    """

    group: int
    rank: RankInterval


class RunVariance(Record):
    """How much of a score is luck: the same tasks run several times.

    `between_tasks` and `within_tasks` are variances of one run of one task, `run_sd` is the
    standard deviation of the headline from run to run, `unstable` the share of tasks whose
    value is not the same in all runs.
    """

    runs: int
    tasks: int
    mean: float
    run_sd: float
    within_tasks: float
    between_tasks: float
    unstable: float
