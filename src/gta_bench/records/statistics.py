"""What a statistic says: an estimate with its interval, a test, a rank, a part of the variance."""

from collections.abc import Mapping
from typing import Literal

from gta_bench.records.base import Record

IntervalMethod = Literal[
    "wilson",
    "wilson-tasks",
    "bootstrap-t",
    "newcombe",
    "newcombe-tasks",
    "prediction-powered",
    "labels-only",
]
TestMethod = Literal["permutation", "mcnemar-exact", "two-proportions"]


class Interval(Record):
    """An estimate and where the true value lies with confidence `level`.

    `n` is the number of independent things behind it: tasks, never their leaves. The methods
    ending in `-tasks` are the wide ones for data in which too few tasks differ. `labels-only` is
    that of people's labels where they cannot correct the judge.
    """

    estimate: float
    low: float
    high: float
    level: float
    n: int
    method: IntervalMethod


class DifferenceTest(Record):
    """Whether two systems differ: the first minus the second, and how likely that is by chance."""

    difference: float
    p_value: float
    n: int
    method: TestMethod


class PairedValues(Record):
    """Two systems on the tasks that both have a value for; the others, named, are not zeros."""

    tasks: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    left_out: tuple[str, ...]


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


Source = Literal[
    "harness",
    "model",
    "harness x model",
    "task",
    "harness x task",
    "model x task",
    "harness x model x task",
    "run",
]


class VarianceComponents(Record):
    """Where the differences come from in a crossed design of harnesses, models and tasks.

    `variance` is unbiased and so may be a little below zero; `share` counts those as zero.
    Without repeats `run` is missing, and its part is inside `harness x model x task`.
    """

    harnesses: int
    models: int
    tasks: int
    runs: int
    variance: Mapping[Source, float]
    share: Mapping[Source, float]
