"""Intervals of pooled scores and of their differences: tasks are drawn, with all that is in them.

A pooled score is a ratio of sums over tasks: passed leaves to leaves, hits to calls, or, with
denominators of 1, a mean. Scores with a highest value have score intervals (Wilson 1927 for one
system, Tango 1998 for two on the same tasks), which hold near 0 and 1 and where few tasks differ.
Where tasks are passed or not, their number is the sample size. Elsewhere it is the number of
independent trials that would vary as much as these tasks do. The quantile is Student's, with the
effective number of tasks (Kish 1965).

A test and its interval are one statistic: 0 is outside of the interval where the test rejects.
docs/concepts/statistics.md has the formulas, docs/measurements.md what they cover.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize  # type: ignore[import-untyped]
from scipy.special import bdtr, bdtrc, stdtr, stdtrit  # type: ignore[import-untyped]

from gta_bench.records.statistics import Difference, Interval, IntervalMethod
from gta_bench.statistics.proportions import score_bounds

Numbers = Sequence[float] | npt.NDArray[np.number[Any]]
_Array = npt.NDArray[np.float64]

# Variances below are those of sums that should be 0.
ROUNDING: Final = 1e-24
# By how much a skewed estimate widens its interval, in parts of its squared skewness. Chosen by
# simulation (tests/measure/test_statistics_grid.py): the smallest that cover 93 % everywhere.
SKEW_OF_ONE: Final = 2.0
SKEW_OF_TWO: Final = 0.5
# The chance with which a difference is to be found that "could have been shown".
POWER: Final = 0.8
# Of fewer trials the power is summed over all outcomes, which come in large steps.
FEW: Final = 30


class Ratio(NamedTuple):
    """A pooled score: its numerator and denominator in every task."""

    numerators: Numbers
    denominators: Numbers

    @property
    def value(self) -> float:
        """The pooled score itself."""
        return float(np.sum(self.numerators) / np.sum(self.denominators))

    @property
    def is_yes_or_no(self) -> bool:
        """Whether every task is passed or not."""
        numerators, denominators = np.asarray(self.numerators), np.asarray(self.denominators)
        passed = (numerators == 0) | (numerators == 1)
        return bool(np.all(denominators == 1) and np.all(passed))


class Worth(NamedTuple):
    """What a pooled score rests on: independent trials, and tasks of equal weight."""

    trials: float
    tasks: float


class _Spread(NamedTuple):
    """How an estimate varies: its variance, its squared skewness, and tasks of equal weight."""

    variance: float
    skewness: float
    tasks: float


def effective_tasks(weights: Numbers) -> float:
    """As how many tasks of equal weight these are worth (Kish)."""
    own = np.asarray(weights, dtype=np.float64)
    return float(own.sum() ** 2 / (own**2).sum())


def interval_of(ratio: Ratio, *, top: float | None = 1.0, level: float = 0.95) -> Interval:
    """The interval of a pooled score between 0 and `top`; of an amount without limit if None."""
    n, value = len(ratio.numerators), ratio.value
    if top is None:
        spread = _spread(_influence(ratio), effective_tasks(ratio.denominators))
        half = quantile_of(spread.tasks, level) * math.sqrt(spread.variance)
        return _interval(value, value - half, value + half, level=level, n=n, method="student")
    return score_interval(value, worth_of(ratio, top=top), top=top, level=level, n=n)


def worth_of(ratio: Ratio, *, top: float = 1.0) -> Worth:
    """How many independent trials vary as much as a pooled score between 0 and `top`."""
    share = ratio.value / top
    if not 0 <= share <= 1:
        raise ValueError(f"{ratio.value} does not lie between 0 and {top}")
    if top == 1 and ratio.is_yes_or_no:
        return Worth(trials=len(ratio.numerators), tasks=len(ratio.numerators))
    spread = _spread(_influence(ratio) / top, effective_tasks(ratio.denominators))
    return Worth(_trials(share * (1 - share), spread, SKEW_OF_ONE), spread.tasks)


def score_interval(value: float, worth: Worth, *, top: float, level: float, n: int) -> Interval:
    """Wilson's interval of a value between 0 and `top`."""
    quantile = quantile_of(worth.tasks, level)
    if math.isinf(quantile):
        return _interval(value, 0.0, top, level=level, n=n, method="wilson")
    low, high = score_bounds(value / top, worth.trials, quantile)
    return _interval(value, low * top, high * top, level=level, n=n, method="wilson")


def difference_of(
    first: Ratio, second: Ratio, *, top: float | None = 1.0, level: float = 0.95
) -> Difference:
    """First pooled score minus second on the same tasks in the same order."""
    n, gap = len(first.numerators), first.value - second.value
    shares = [_shares(side) for side in (first, second)]
    weights = (shares[0] + shares[1]) / 2
    moved = _influence(first) - _influence(second)
    # As few as the side has on which fewer tasks weigh more.
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
        low = _where(lambda at: score(at) - reach, -1.0, scaled)
        high = _where(lambda at: score(at) + reach, scaled, 1.0)
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
    """The smallest difference that is found with the usual power, if so large a share differs.

    1, all that there is, where nothing smaller is.
    """
    bound = quantile_of(tasks, level)
    if math.isinf(bound):
        return 1.0
    if trials < FEW:
        return (
            bisect_left(
                range(100),
                POWER,
                key=lambda hundredths: _power(hundredths / 100, differing, int(trials), bound),
            )
            / 100
        )
    reach = bound + float(stdtrit(tasks - 1, POWER))
    # What differs is at least the difference itself.
    return min(1.0, max(reach * math.sqrt(differing / trials), reach**2 / (trials + reach**2)))


def _power(gap: float, differing: float, trials: int, bound: float) -> float:
    """How often the test finds a difference, summed over all outcomes of so many trials."""
    share = max(gap, differing, 1e-9)
    apart = np.arange(1, trials + 1)
    chance = np.diff(bdtr(np.arange(trials + 1), trials, share))
    # Of those that differ the first must win more than this, or fewer than the rest.
    most = np.minimum(np.floor((apart + bound * np.sqrt(apart)) / 2), apart)
    better = (1 + gap / share) / 2
    found = bdtrc(most, apart, better) + bdtrc(most, apart, 1 - better)
    return float(chance @ found)


def _student_difference(gap: float, spread: _Spread, *, n: int, level: float) -> Difference:
    """Of amounts without a highest value, such as seconds."""
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


def _influence(ratio: Ratio) -> _Array:
    """How much each task moves a pooled score; the squares add up to its variance."""
    numerators = np.asarray(ratio.numerators, dtype=np.float64)
    denominators = np.asarray(ratio.denominators, dtype=np.float64)
    moved: _Array = (numerators - ratio.value * denominators) / denominators.sum()
    return moved


def _shares(ratio: Ratio) -> _Array:
    denominators = np.asarray(ratio.denominators, dtype=np.float64)
    found: _Array = denominators / denominators.sum()
    return found


def _rates(ratio: Ratio) -> _Array:
    """Every task's own score; one with nothing to measure is like the rest."""
    numerators = np.asarray(ratio.numerators, dtype=np.float64)
    denominators = np.asarray(ratio.denominators, dtype=np.float64)
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
    """How many independent trials vary as much; where nothing varies, one for each task."""
    variance = spread.variance * (1 + skew * spread.skewness)
    return nominal / variance if variance > ROUNDING and nominal > 0 else spread.tasks


def quantile_of(tasks: float, level: float) -> float:
    """Student's; without limit where there is one task only."""
    return float(stdtrit(tasks - 1, (1 + level) / 2)) if tasks > 1 + 1e-9 else math.inf


def _p_value(statistic: float, tasks: float) -> float:
    return 2 * float(stdtr(tasks - 1, -abs(statistic)))


def _tango(gap: float, differing: float, trials: float) -> Callable[[float], float]:
    """The score statistic of a true difference (Tango 1998), from the shares that differ.

    `differing` of the trials are won by one system only; the first wins `gap` more of them.
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


def _where(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, or the end that it does not reach."""
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
