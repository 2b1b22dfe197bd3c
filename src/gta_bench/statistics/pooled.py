"""Intervals and tests of pooled scores, with the task as the sampling unit.

A pooled score is a ratio of sums over tasks: passed leaves to leaves, hits to calls, or, with
denominators of 1, a mean. Scores with a maximum get score intervals (Wilson 1927 for one system,
Tango 1998 for two systems on the same tasks), which stay accurate near 0 and 1 and when few tasks
differ. If each task is passed or failed, the sample size is the number of tasks. Otherwise it is
the number of independent trials with the same variance. The quantile is Student's, with the
effective number of tasks (Kish 1965).

A test and its interval use the same statistic: the test rejects exactly if 0 is outside of the
interval. docs/concepts/statistics.md has the formulas, docs/measurements.md the coverage.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize  # type: ignore[import-untyped]
from scipy.special import bdtr, bdtrc, stdtr, stdtrit  # type: ignore[import-untyped]

from gta_bench.records.statistics import Difference, Interval, IntervalMethod, RunVariance
from gta_bench.statistics.proportions import score_bounds

Numbers = Sequence[float] | npt.NDArray[np.number[Any]]
_Array = npt.NDArray[np.float64]

# Smaller variances are rounding errors of sums that should be 0.
ROUNDING: Final = 1e-24
# How much the squared skewness of an estimate widens its interval. Chosen by simulation
# (tests/measure/test_statistics_grid.py): the smallest values that cover 93 % everywhere.
SKEW_OF_ONE: Final = 2.0
SKEW_OF_TWO: Final = 0.5
# The power at which a difference counts as detectable.
POWER: Final = 0.8
# With fewer trials, the power is summed exactly over all outcomes.
FEW: Final = 30


class Ratio(NamedTuple):
    """A pooled score: its numerator and denominator in each task.

    >>> Ratio([3, 1], [4, 6]).value
    0.4
    """

    numerators: Numbers
    denominators: Numbers

    @classmethod
    def of_mean(cls, values: Sequence[float]) -> "Ratio":
        """Return the mean of a value of each task."""
        return cls(values, [1.0] * len(values))

    @property
    def value(self) -> float:
        """The sum of the numerators divided by the sum of the denominators."""
        return float(np.sum(self.numerators) / np.sum(self.denominators))

    @property
    def is_yes_or_no(self) -> bool:
        """Whether each task is either passed or failed."""
        numerators, denominators = self.arrays
        passed = (numerators == 0) | (numerators == 1)
        return bool(np.all(denominators == 1) and np.all(passed))

    @property
    def arrays(self) -> tuple[_Array, _Array]:
        """Numerators and denominators as arrays of floats."""
        return np.asarray(self.numerators, np.float64), np.asarray(self.denominators, np.float64)


class Worth(NamedTuple):
    """The sample size of a pooled score: independent trials, and tasks of equal weight."""

    trials: float
    tasks: float


class _Spread(NamedTuple):
    """The variance and squared skewness of an estimate, and the effective number of tasks."""

    variance: float
    skewness: float
    tasks: float


def effective_tasks(weights: Numbers) -> float:
    """Return how many tasks of equal weight have the same precision (Kish)."""
    own = np.asarray(weights, dtype=np.float64)
    return float(own.sum() ** 2 / (own**2).sum())


def compute_interval(ratio: Ratio, *, top: float | None = 1.0, level: float = 0.95) -> Interval:
    """Return the interval of a score between 0 and `top`, or of an unbounded amount if None."""
    n, value = len(ratio.numerators), ratio.value
    if top is None:
        spread = _spread(task_influence(ratio), effective_tasks(ratio.denominators))
        half = quantile_of(spread.tasks, level) * math.sqrt(spread.variance)
        return _interval(value, value - half, value + half, level=level, n=n, method="student")
    return score_interval(value, worth_of(ratio, top=top), top=top, level=level, n=n)


def worth_of(ratio: Ratio, *, top: float = 1.0) -> Worth:
    """Return how many independent trials have the same variance as the pooled score."""
    share = ratio.value / top
    if not 0 <= share <= 1:
        raise ValueError(f"{ratio.value} is not between 0 and {top}")
    if top == 1 and ratio.is_yes_or_no:
        return Worth(trials=len(ratio.numerators), tasks=len(ratio.numerators))
    spread = _spread(task_influence(ratio) / top, effective_tasks(ratio.denominators))
    return Worth(_trials(share * (1 - share), spread, SKEW_OF_ONE), spread.tasks)


def score_interval(value: float, worth: Worth, *, top: float, level: float, n: int) -> Interval:
    """Return Wilson's interval of a value between 0 and `top`."""
    quantile = quantile_of(worth.tasks, level)
    if math.isinf(quantile):
        return _interval(value, 0.0, top, level=level, n=n, method="wilson")
    low, high = score_bounds(value / top, worth.trials, quantile)
    return _interval(value, low * top, high * top, level=level, n=n, method="wilson")


def compute_difference(
    first: Ratio, second: Ratio, *, top: float | None = 1.0, level: float = 0.95
) -> Difference:
    """Compare two pooled scores, first minus second, on the same tasks in the same order."""
    n, gap = len(first.numerators), first.value - second.value
    shares = [side / side.sum() for side in (first.arrays[1], second.arrays[1])]
    weights = (shares[0] + shares[1]) / 2
    moved = task_influence(first) - task_influence(second)
    # The smaller effective number of the two sides.
    worth = min(map(effective_tasks, shares))
    if top is None:
        return _student_difference(gap, _spread(moved, worth), n=n, level=level)
    apart = np.abs(_rates(first) - _rates(second)) / top
    scaled, differing = gap / top, max(abs(gap / top), float(weights @ apart))
    if top == 1 and first.is_yes_or_no and second.is_yes_or_no:
        tasks = trials = float(n)
    else:
        spread = _spread(moved / top, worth)
        tasks = spread.tasks
        trials = _trials(differing - scaled**2, spread, SKEW_OF_TWO)
    reach = quantile_of(tasks, level)
    if math.isinf(reach):
        low, high, p_value = -1.0, 1.0, 1.0
    else:
        score = _tango(scaled, differing, trials)
        low = find_root(lambda at: score(at) - reach, -1.0, scaled)
        high = find_root(lambda at: score(at) + reach, scaled, 1.0)
        p_value = _p_value(score(0.0), tasks)
    return Difference(
        interval=_interval(gap, low * top, high * top, level=level, n=n, method="tango"),
        p_value=p_value,
        effective=tasks,
        detectable=smallest_difference(differing, trials, tasks, level=level) * top,
    )


def smallest_difference(
    differing: float, trials: float, tasks: float, *, level: float = 0.95
) -> float:
    """Return the smallest difference that the test detects with 80 % power.

    `differing` is the share of trials in which the two systems differ. Returns 1 if no smaller
    difference can be detected.
    """
    bound = quantile_of(tasks, level)
    if math.isinf(bound):
        return 1.0
    if trials < FEW:

        def power(hundredths: int) -> float:
            return _power(hundredths / 100, differing, int(trials), bound)

        return bisect_left(range(100), POWER, key=power) / 100
    reach = bound + float(stdtrit(tasks - 1, POWER))
    # The share that differs is at least the difference.
    return min(1.0, max(reach * math.sqrt(differing / trials), reach**2 / (trials + reach**2)))


def _power(gap: float, differing: float, trials: int, bound: float) -> float:
    """Return the power of the test, summed over all outcomes of the trials."""
    share = max(gap, differing, 1e-9)
    apart = np.arange(1, trials + 1)
    chance = np.diff(bdtr(np.arange(trials + 1), trials, share))
    # The test rejects if one system wins more than this many of the trials that differ.
    most = np.minimum(np.floor((apart + bound * np.sqrt(apart)) / 2), apart)
    better = (1 + gap / share) / 2
    found = bdtrc(most, apart, better) + bdtrc(most, apart, 1 - better)
    return float(chance @ found)


def _student_difference(gap: float, spread: _Spread, *, n: int, level: float) -> Difference:
    """Compare amounts without a maximum, such as seconds."""
    error = math.sqrt(spread.variance)
    half = quantile_of(spread.tasks, level) * error
    statistic = gap / error if error else (math.inf if gap else 0.0)
    known = spread.tasks > 1 + 1e-9
    reach = quantile_of(spread.tasks, level) + float(stdtrit(max(1e-9, spread.tasks - 1), POWER))
    return Difference(
        interval=_interval(gap, gap - half, gap + half, level=level, n=n, method="student"),
        p_value=_p_value(statistic, spread.tasks) if known else 1.0,
        effective=spread.tasks,
        detectable=reach * error if known else math.inf,
    )


def task_influence(ratio: Ratio) -> _Array:
    """Return how much each task moves a pooled score; the squares sum to its variance."""
    numerators, denominators = ratio.arrays
    moved: _Array = (numerators - ratio.value * denominators) / denominators.sum()
    return moved


def _rates(ratio: Ratio) -> _Array:
    """Return the score of each task; a task with nothing to measure gets the pooled score."""
    numerators, denominators = ratio.arrays
    empty = np.full(len(numerators), ratio.value)
    found: _Array = np.divide(numerators, denominators, out=empty, where=denominators > 0)
    return found


def _spread(moved: _Array, tasks: float) -> _Spread:
    squares = float((moved**2).sum())
    if squares <= ROUNDING or tasks <= 1:
        return _Spread(0.0, 0.0, tasks)
    skewness = float((moved**3).sum()) ** 2 / squares**3
    return _Spread(squares * tasks / (tasks - 1), skewness, tasks)


def _trials(nominal: float, spread: _Spread, skew: float) -> float:
    """Return how many independent trials have this variance; one per task if nothing varies."""
    variance = spread.variance * (1 + skew * spread.skewness)
    return nominal / variance if variance > ROUNDING and nominal > 0 else spread.tasks


def quantile_of(tasks: float, level: float) -> float:
    """Return Student's quantile; infinite for a single task."""
    return float(stdtrit(tasks - 1, (1 + level) / 2)) if tasks > 1 + 1e-9 else math.inf


def _p_value(statistic: float, tasks: float) -> float:
    return 2 * float(stdtr(tasks - 1, -abs(statistic)))


def _tango(gap: float, differing: float, trials: float) -> Callable[[float], float]:
    """Return the score statistic as a function of the true difference (Tango 1998).

    `differing` is the share of trials that only one system wins, `gap` how many more of them the
    first one wins.
    """
    lost = (differing - gap) / 2

    def statistic(at: float) -> float:
        linear = (2 - gap) * at - differing
        root = max(0.0, linear**2 + 8 * lost * at * (1 - at))
        variance = max(0.0, (math.sqrt(root) - linear) / 2 + at * (1 - at)) / trials
        if gap == at:
            return 0.0
        return (gap - at) / math.sqrt(variance) if variance else math.copysign(math.inf, gap - at)

    return statistic


def find_root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a decreasing function, or the end of the range that is closest to it."""
    inside = low + 1e-12, high - 1e-12
    if inside[0] >= inside[1] or excess(inside[0]) <= 0:
        return low
    if excess(inside[1]) >= 0:
        return high
    return float(optimize.brentq(excess, *inside))


def _interval(
    estimate: float, low: float, high: float, *, level: float, n: int, method: IntervalMethod
) -> Interval:
    return Interval(estimate=estimate, low=low, high=high, level=level, n=n, method=method)


def pass_at_k(successes: Sequence[int], runs: Sequence[int], k: int) -> Interval:
    """Return the probability that at least one of `k` runs of a task succeeds, over all tasks.

    Unbiased for any number of runs of at least `k` (Chen et al. 2021).
    """
    values = [1 - _all_succeed(n - c, n, k) for c, n in zip(successes, runs, strict=True)]
    return compute_interval(Ratio.of_mean(values))


def pass_hat_k(successes: Sequence[int], runs: Sequence[int], k: int) -> Interval:
    """Return pass^k, the probability that all of `k` runs of a task succeed (tau-bench)."""
    values = [_all_succeed(c, n, k) for c, n in zip(successes, runs, strict=True)]
    return compute_interval(Ratio.of_mean(values))


def run_variance(scores: Sequence[Sequence[float]]) -> RunVariance:
    """Split the variance of scores (a row per task, a column per run) into tasks and luck."""
    table = np.asarray(scores, dtype=np.float64)
    tasks, runs = table.shape
    if runs < 2 or tasks < 2:
        raise ValueError("variance needs two tasks and two runs")
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(table.mean(axis=1).var(ddof=1)) - within / runs
    return RunVariance(
        runs=runs,
        tasks=tasks,
        mean=float(table.mean()),
        run_sd=float(table.mean(axis=0).std(ddof=1)),
        within_tasks=within,
        between_tasks=max(0.0, between),
        unstable=float(np.mean(table.min(axis=1) != table.max(axis=1))),
    )


def _all_succeed(good: int, n: int, k: int) -> float:
    """Return the probability that `k` runs drawn from `n` are all good."""
    if k > n:
        raise ValueError(f"cannot draw {k} runs of a task from {n}")
    if good < k:
        return 0.0
    # Not by binomials, which have thousands of digits where a task was run thousands of times.
    drawn = np.arange(k)
    return float(np.prod((good - drawn) / (n - drawn)))
