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
    square = _z(level) ** 2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = math.sqrt(square * (share * (1 - share) / n + square / (4 * n * n))) / (1 + square / n)
    return Interval(
        estimate=share,
        # At the ends the bound is exactly the end, whatever rounding says.
        low=max(0.0, middle - half) if successes > 0 else 0.0,
        high=min(1.0, middle + half) if successes < n else 1.0,
        level=level,
        n=n,
        method="wilson",
    )


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
