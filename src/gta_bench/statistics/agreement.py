"""Agreement of several raters: Krippendorff's alpha, ICC, weighted kappa, flips at a threshold.

A table has a row for each item and a column for each rater; None where a rater gave nothing.
Plain arithmetic, so that reports need no further package.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from math import sqrt
from statistics import fmean, variance

from gta_bench.records.agreement import Agreement

Row = Sequence[float | None]
# How far apart two ratings are.
Distance = Callable[[float, float], float]
# Means are not exact: 7, 7 and 7 averaged may come out a hair below 7.
ROUNDING = 1e-9


def interval_distance(one: float, other: float) -> float:
    """Of scores: the squared difference."""
    return (one - other) ** 2


def nominal_distance(one: float, other: float) -> float:
    """Of names: equal or not."""
    return float(one != other)


def krippendorff_alpha(
    table: Sequence[Row], distance: Distance = interval_distance
) -> float | None:
    """Krippendorff's alpha for any number of raters and gaps; None where no ratings differ.

    Items with a single rating say nothing and do not count (Krippendorff 2011).
    """
    items = [given for row in table if len(given := _given(row)) > 1]
    counts = Counter(value for item in items for value in item)
    n = counts.total()
    expected = 2 * sum(
        counts[one] * counts[other] * distance(one, other) for one, other in combinations(counts, 2)
    )
    if not expected:
        return None
    observed = sum(
        2 * sum(distance(*pair) for pair in combinations(item, 2)) / (len(item) - 1)
        for item in items
    )
    return 1 - (n - 1) * observed / expected


def icc(table: Sequence[Row]) -> float | None:
    """ICC(2,1) of Shrout and Fleiss (1979): items and raters random, absolute agreement.

    Over the items that all raters rated; None where there are fewer than two, or nothing varies.
    """
    rows = [given for row in table if len(given := _given(row)) == len(row)]
    if len(rows) < 2 or len(rows[0]) < 2:
        return None
    n, k = len(rows), len(rows[0])
    grand = fmean(value for row in rows for value in row)
    of_items = k * sum((fmean(row) - grand) ** 2 for row in rows)
    of_raters = n * sum((fmean(column) - grand) ** 2 for column in zip(*rows, strict=True))
    rest = sum((value - grand) ** 2 for row in rows for value in row) - of_items - of_raters
    items, raters = of_items / (n - 1), of_raters / (k - 1)
    error = max(0.0, rest) / ((n - 1) * (k - 1))
    whole = items + (k - 1) * error + k * (raters - error) / n
    return (items - error) / whole if whole > ROUNDING else None


def weighted_kappa(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Cohen's kappa with quadratic weights, for any numbers; of zeros and ones the plain one.

    The squared difference against that of ratings paired at random; None where both are constant.
    """
    one, two = fmean(first), fmean(second)
    chance = (
        fmean((value - one) ** 2 for value in first)
        + fmean((value - two) ** 2 for value in second)
        + (one - two) ** 2
    )
    if chance <= ROUNDING:
        return None
    return 1 - fmean((a - b) ** 2 for a, b in zip(first, second, strict=True)) / chance


def pairwise_kappa(table: Sequence[Row]) -> float | None:
    """The mean of the weighted kappas of all pairs of raters that have one."""
    found = []
    for one, two in combinations(range(len(table[0]) if table else 0), 2):
        pairs = [
            (a, b) for row in table if (a := row[one]) is not None and (b := row[two]) is not None
        ]
        if pairs:
            found.append(weighted_kappa([a for a, _ in pairs], [b for _, b in pairs]))
    known = [kappa for kappa in found if kappa is not None]
    return fmean(known) if known else None


def flip_chance(ratings: Sequence[float], threshold: float) -> float:
    """The chance that two of the ratings fall on different sides of the threshold."""
    above = sum(map(int, passed(ratings, threshold)))
    n = len(ratings)
    return 2 * above * (n - above) / (n * (n - 1))


def passed(ratings: Sequence[float], threshold: float) -> list[float]:
    """1 for each rating that reaches the threshold, else 0."""
    return [float(value >= threshold - ROUNDING) for value in ratings]


def agreement(table: Sequence[Row], *, threshold: float) -> Agreement:
    """Everything that is said of a table of scores."""
    items = [given for row in table if len(given := _given(row)) > 1]
    sides = [
        [None if value is None else passed([value], threshold)[0] for value in row] for row in table
    ]
    return Agreement(
        raters=max(map(len, table), default=0),
        leaves=len(items),
        alpha=krippendorff_alpha(table),
        pass_alpha=krippendorff_alpha(sides, nominal_distance),
        icc=icc(table),
        kappa=pairwise_kappa(table),
        spread=sqrt(fmean(map(variance, items))) if items else None,
        flip_rate=fmean(flip_chance(item, threshold) for item in items) if items else None,
    )


def _given(row: Row) -> list[float]:
    return [value for value in row if value is not None]
