"""Contrasts of systems in a balanced design: decisions with a margin, power, parts of the error.

Every contrast is `factor` times the difference of two means over systems: of two systems, of two
levels of a factor, or of the two diagonals of an interaction. Scores are shares from 0 to 1.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit  # type: ignore[import-untyped]

from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import POWER, Ratio, compute_difference, quantile_of

_Array = npt.NDArray[np.float64]
MarginSide = Literal["first", "second", "same"]
# Smaller p-values are not distinguished.
_LEAST_P = 1e-9
# Halvings of the logarithm of a p-value: enough for three digits.
_HALVINGS = 16


class Contrast(NamedTuple):
    """The systems of both sides by model and agent index, and the factor of their difference.

    >>> Contrast(first=((0, 0), (1, 1)), second=((1, 0), (0, 1)), factor=2).weights(2, 2).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """

    first: tuple[tuple[int, int], ...]
    second: tuple[tuple[int, int], ...]
    factor: float = 1.0

    def weights(self, models: int, agents: int) -> _Array:
        """Return the weight of every system in the contrast."""
        found = np.zeros((models, agents))
        for sign, side in ((1, self.first), (-1, self.second)):
            for place in side:
                found[place] += sign * self.factor / len(side)
        return found


class Spread(NamedTuple):
    """Variances of a task's score: by model, agent and system beyond the others, and by run."""

    task_model: float
    task_agent: float
    task_system: float
    run: float


class MarginTest(NamedTuple):
    """Where a difference is, and the smallest error rate at which an interval shows that.

    `side` is None if the estimate is on a border.
    """

    side: MarginSide | None
    p_value: float


class ErrorParts(NamedTuple):
    """The standard error of a contrast, and the share of its variance that is between runs.

    `runs` is None if there is one run, so that it cannot be separated from the tasks.
    """

    standard_error: float
    runs: float | None


def contrast_interval(
    first: Sequence[float], second: Sequence[float], *, factor: float = 1.0, level: float = 0.95
) -> Interval:
    """Return the interval of `factor` times first minus second, from the scores of each task."""
    return _compare(first, second, level).scaled(factor)


def decide_margin(
    first: Sequence[float], second: Sequence[float], *, margin: float = 0.0
) -> MarginTest:
    """Decide on which side of the margins the difference first minus second is.

    With a margin of 0, which is higher; else whether they differ by more than the margin, or by
    less. Whatever is decided at a level is wrong at most that often, as the interval then does not
    contain the true difference.

    >>> decide_margin([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 1, 0, 0, 0, 0]).side
    'first'
    """
    estimate = float(np.mean(first) - np.mean(second))
    borders = (-margin, margin) if margin else (0.0,)
    if min(abs(estimate - one) for one in borders) < 1e-12:
        return MarginTest(None, 1.0)
    side: MarginSide = "first" if estimate > margin else "second" if estimate < -margin else "same"
    if not margin:
        both = (Ratio.of_mean(one) for one in (first, second))
        return MarginTest(side, compute_difference(*both).p_value)

    def shows(alpha: float) -> bool:
        found = _compare(first, second, 1 - alpha)
        return all(one < found.low or one > found.high for one in borders)

    low, high = math.log(_LEAST_P), 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if shows(math.exp(middle)) else (middle, high)
    return MarginTest(side, math.exp(high))


def find_detectable(
    first: Sequence[float], second: Sequence[float], *, factor: float = 1.0, tests: int = 1
) -> float:
    """Return the smallest contrast that the test of these tasks detects with 80 % power."""
    both = (Ratio.of_mean(one) for one in (first, second))
    return factor * compute_difference(*both, level=1 - 0.05 / tests).detectable


def plan_contrast(
    weights: _Array, spread: Spread, *, tasks: int, runs: int, tests: int = 1, alpha: float = 0.05
) -> float:
    """Return the smallest contrast that is shown with 80 % power, from assumed variances.

    `tests` is how many questions share the error rate `alpha`; the first of Holm's steps counts.

    >>> import numpy as np
    >>> assumed = Spread(0.0, 0.0, 0.1, 0.05)
    >>> round(plan_contrast(np.array([[1.0], [-1.0]]), assumed, tasks=50, runs=1), 3)
    0.221
    """
    bound = quantile_of(tasks, 1 - alpha / tests)
    if math.isinf(bound):
        return math.inf
    reach = bound + float(stdtrit(tasks - 1, POWER))
    return reach * math.sqrt(sum_variance(weights, spread, runs=runs) / tasks)


def sum_variance(weights: _Array, spread: Spread, *, runs: int) -> float:
    """Return the variance of a task's contrast; what all systems share cancels."""
    by_model, by_agent = weights.sum(axis=1), weights.sum(axis=0)
    own = spread.task_system + spread.run / runs
    return float(
        spread.task_model * (by_model**2).sum()
        + spread.task_agent * (by_agent**2).sum()
        + own * (weights**2).sum()
    )


def split_error(scores: _Array, weights: _Array) -> ErrorParts:
    """Return the standard error of a contrast; `scores` are by task, model, agent and run."""
    tasks, runs = scores.shape[0], scores.shape[3]
    if tasks < 2:
        return ErrorParts(math.inf, None)
    own = np.einsum("tma,ma->t", scores.mean(axis=3), weights)
    variance = float(own.var(ddof=1)) / tasks
    if runs == 1:
        return ErrorParts(math.sqrt(variance), None)
    noise = scores.var(axis=3, ddof=1).mean(axis=0)
    between = float((weights**2 * noise).sum()) / runs / tasks
    # The estimate of one part may be larger than that of the whole.
    return ErrorParts(math.sqrt(variance), min(1.0, between / variance) if variance else 0.0)


def _compare(first: Sequence[float], second: Sequence[float], level: float) -> Interval:
    both = (Ratio.of_mean(one) for one in (first, second))
    return compute_difference(*both, level=level).interval
