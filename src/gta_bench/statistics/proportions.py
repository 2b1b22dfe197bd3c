"""Shares of independent things: Wilson's interval, Newcombe's difference, the test of two shares.

`successes` need not be whole: a mean of values from 0 to 1 varies at most as much as a share of
the same size, so these intervals are never too narrow for it.
"""

import math

from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

from gta_bench.records.statistics import DifferenceTest, Interval


def wilson(successes: float, n: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share; unlike the normal one it is right near 0 and 1."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} of {n} is no share")
    share = successes / n
    low, high = score_bounds(share, n, _z(level))
    return Interval(estimate=share, low=low, high=high, level=level, n=n, method="wilson")


def score_bounds(share: float, trials: float, quantile: float) -> tuple[float, float]:
    """Wilson's formula: the true shares whose score statistic is the quantile."""
    square = quantile**2
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    root = share * (1 - share) / trials + square / (4 * trials**2)
    half = math.sqrt(square * root) / (1 + square / trials)
    # At the ends the bound is exactly the end, whatever rounding says.
    low = max(0.0, middle - half) if share > 0 else 0.0
    return low, min(1.0, middle + half) if share < 1 else 1.0


def newcombe(
    first: float, first_n: int, second: float, second_n: int, *, level: float = 0.95
) -> Interval:
    """First share minus second, of different or of unpaired things (Newcombe 1998, method 10)."""
    one, two = wilson(first, first_n, level=level), wilson(second, second_n, level=level)
    difference = one.estimate - two.estimate
    return Interval(
        estimate=difference,
        low=difference - math.hypot(one.estimate - one.low, two.high - two.estimate),
        high=difference + math.hypot(one.high - one.estimate, two.estimate - two.low),
        level=level,
        n=min(first_n, second_n),
        method="newcombe",
    )


def two_proportions(first: float, first_n: int, second: float, second_n: int) -> DifferenceTest:
    """Whether two unpaired shares differ: the score test with the pooled share, two-sided."""
    pooled = (first + second) / (first_n + second_n)
    error = math.sqrt(pooled * (1 - pooled) * (1 / first_n + 1 / second_n))
    difference = first / first_n - second / second_n
    return DifferenceTest(
        difference=difference,
        p_value=2 * float(ndtr(-abs(difference) / error)) if error else 1.0,
        n=min(first_n, second_n),
        method="two-proportions",
    )


def _z(level: float) -> float:
    return float(ndtri((1 + level) / 2))
