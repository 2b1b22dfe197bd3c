"""Unpaired proportions: intervals, a test of two of them, and ranks from many such tests.

`successes` does not have to be an integer. A mean of values between 0 and 1 varies at most as much
as a proportion of the same size, so these intervals are conservative for it.
"""

import math
from collections.abc import Mapping, Sequence

from scipy.special import ndtr, ndtri  # type: ignore[import-untyped]

from gta_bench.records.statistics import DifferenceTest, Interval, RankInterval, Standing


def wilson(successes: float, n: int, *, level: float = 0.95) -> Interval:
    """Return Wilson's score interval, which stays accurate near 0 and 1."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} of {n} is not a proportion")
    share = successes / n
    low, high = score_bounds(share, n, float(ndtri((1 + level) / 2)))
    return Interval(estimate=share, low=low, high=high, level=level, n=n, method="wilson")


def score_bounds(share: float, trials: float, quantile: float) -> tuple[float, float]:
    """Return both ends of Wilson's interval for any number of trials and any quantile."""
    square = quantile**2
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    root = share * (1 - share) / trials + square / (4 * trials**2)
    half = math.sqrt(square * root) / (1 + square / trials)
    # For a share of 0 or 1 that bound is exact; do not let rounding move it.
    low = max(0.0, middle - half) if share > 0 else 0.0
    return low, min(1.0, middle + half) if share < 1 else 1.0


def newcombe(
    first: float, first_n: int, second: float, second_n: int, *, level: float = 0.95
) -> Interval:
    """Return the interval of first minus second, unpaired (Newcombe 1998, method 10)."""
    found = subtract(wilson(first, first_n, level=level), wilson(second, second_n, level=level))
    return found.model_copy(update={"method": "newcombe"})


def subtract(one: Interval, two: Interval) -> Interval:
    """Return the interval of the first minus the second, if both are independent (MOVER)."""
    difference = one.estimate - two.estimate
    return Interval(
        estimate=difference,
        low=difference - math.hypot(one.estimate - one.low, two.high - two.estimate),
        high=difference + math.hypot(one.high - one.estimate, two.estimate - two.low),
        level=one.level,
        n=min(one.n, two.n),
        method="mover",
    )


def two_proportions(first: float, first_n: int, second: float, second_n: int) -> DifferenceTest:
    """Test whether two unpaired proportions differ: two-sided score test, pooled variance."""
    pooled = (first + second) / (first_n + second_n)
    error = math.sqrt(pooled * (1 - pooled) * (1 / first_n + 1 / second_n))
    difference = first / first_n - second / second_n
    return DifferenceTest(
        difference=difference,
        p_value=2 * float(ndtr(-abs(difference) / error)) if error else 1.0,
        n=min(first_n, second_n),
        method="two-proportions",
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values by Holm's method, which bounds the chance of any false positive."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for done, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - done) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)


def rank_systems(
    scores: Sequence[float], p_values: Mapping[tuple[int, int], float], *, level: float = 0.05
) -> tuple[Standing, ...]:
    """Return each system's group and rank interval, from a test of every pair.

    `p_values` has an entry for each pair of indexes, lower index first; they are corrected by
    Holm's method. A system ranks below those that are significantly better and above those that
    are significantly worse.
    """
    adjusted = holm(tuple(p_values.values()))
    apart = {pair for pair, value in zip(p_values, adjusted, strict=True) if value < level}

    def differ(one: int, two: int) -> bool:
        return (min(one, two), max(one, two)) in apart

    systems = range(len(scores))
    groups: dict[int, int] = {}
    leader, number = 0, 0
    for index in sorted(systems, key=lambda index: -scores[index]):
        if not number or differ(leader, index):
            leader, number = index, number + 1
        groups[index] = number
    standings = []
    for index, score in enumerate(scores):
        others = [scores[other] for other in systems if differ(index, other)]
        rank = RankInterval(
            rank=1 + sum(other > score for other in scores),
            low=1 + sum(other > score for other in others),
            high=len(scores) - sum(other < score for other in others),
        )
        standings.append(Standing(group=groups[index], rank=rank))
    return tuple(standings)
