"""Agreement of raters with intervals: AC1, kappa, Krippendorff's alpha, ICC, flips at a threshold.

A table has a row for each item and a column for each rater, with None for a missing rating. Each
coefficient is 1 minus the ratio of the observed disagreement to that expected by chance, computed
from sums over items. Its interval is a jackknife that leaves out one task at a time, with all of
its items. Estimates near 1 are skewed, so the disagreement gets a score interval with the number
of independent trials that have the same variance (see `pooled`).
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import fmean, variance

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit  # type: ignore[import-untyped]

from gta_bench.records.agreement import Agreement
from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import SKEW_OF_ONE, Ratio, compute_interval, effective_tasks
from gta_bench.statistics.proportions import score_bounds

Ratings = Sequence[Sequence[float | None]]
Array = npt.NDArray[np.float64]
# Computes coefficients and their disagreement by chance from rows of sums over items.
Measure = Callable[[Array], tuple[Array, Array]]
# Means are not exact: the mean of 7, 7 and 7 may be slightly below 7.
ROUNDING = 1e-9
# The maximum score.
TOP = 10.0
LEVEL = 0.95


def compute_ac1(
    table: Ratings, tasks: Sequence[str], *, categories: Sequence[float] = (0.0, 1.0)
) -> Interval | None:
    """Return Gwet's AC1 (2008) of categories, for any number of raters and gaps.

    Unlike kappa, it stays high if raters agree on nearly everything and nearly all items are in one
    category. None if no item has two ratings.
    """
    values = _values(table)
    counts = np.stack([(values == one).sum(axis=1) for one in categories], axis=1)
    given = counts.sum(axis=1)
    paired = given > 1
    pairs = np.where(paired, given * (given - 1), 1)
    agreed = (counts * (counts - 1)).sum(axis=1) / pairs
    shares = counts / np.maximum(given, 1)[:, None]
    parts = np.column_stack([paired, agreed * paired, given > 0, shares])

    def measure(sums: Array) -> tuple[Array, Array]:
        seen = sums[:, 1] / sums[:, 0]
        names = sums[:, 3:] / sums[:, 2:3]
        chance = 1 - (names * (1 - names)).sum(axis=1) / (len(categories) - 1)
        return 1 - (1 - seen) / chance, chance

    return _interval(parts, paired, tasks, measure)


def compute_kappa(table: Ratings, tasks: Sequence[str], *, top: float = TOP) -> Interval | None:
    """Return Cohen's kappa with quadratic weights; for zeros and ones it is the unweighted kappa.

    For more than two raters it is the mean over pairs. None if no pair has any variance.
    """
    values = _values(table) / top
    parts = [_moments(one, two) for one, two in combinations(values.T, 2)]
    if not parts:
        return None

    def measure(sums: Array) -> tuple[Array, Array]:
        found = [_kappa(part) for part in np.split(sums, len(parts), axis=1)]
        values, chances = (np.stack(side) for side in zip(*found, strict=True))
        known = np.isfinite(values)
        count = known.sum(axis=0)
        # A pair without variance has no kappa.
        means = [np.where(known, one, 0).sum(axis=0) / count for one in (values, chances)]
        return means[0], means[1]

    stacked = np.column_stack(parts)
    return _interval(stacked, stacked[:, ::6].sum(axis=1) > 0, tasks, measure)


def compute_alpha(table: Ratings, tasks: Sequence[str], *, top: float = TOP) -> Interval | None:
    """Return Krippendorff's interval alpha; for zeros and ones it equals the nominal alpha.

    Works for any number of raters and gaps; items with a single rating do not count
    (Krippendorff 2011). None if all ratings are equal.
    """
    values = _values(table) / top
    given = np.isfinite(values).sum(axis=1)
    paired = given > 1
    total, squares = np.nansum(values, axis=1), np.nansum(values**2, axis=1)
    within = 2 * (given * squares - total**2) / np.maximum(given - 1, 1)
    parts = np.column_stack([given, total, squares, within]) * paired[:, None]

    def measure(sums: Array) -> tuple[Array, Array]:
        n, total, squares, within = sums.T
        chance = _varying(2 * (n * squares - total**2) / (n * (n - 1)))
        return 1 - within / n / chance, chance

    return _interval(parts, paired, tasks, measure)


def compute_icc(table: Ratings, tasks: Sequence[str], *, top: float = TOP) -> Interval | None:
    """Return ICC(2,1) of Shrout and Fleiss (1979): random items and raters, absolute agreement.

    Uses the items that all raters rated. None if there are fewer than two or nothing varies.
    """
    values = _values(table) / top
    raters = values.shape[1]
    whole = np.isfinite(values).sum(axis=1) == raters
    if raters < 2 or whole.sum() < 2:
        return None
    known = np.where(whole[:, None], values, 0)
    parts = np.column_stack([whole, known, known.sum(axis=1) ** 2, (known**2).sum(axis=1)])

    def measure(sums: Array) -> tuple[Array, Array]:
        n, columns = sums[:, 0], sums[:, 1:-2]
        grand = columns.sum(axis=1) ** 2 / (n * raters)
        of_items, of_raters = sums[:, -2] / raters - grand, (columns**2).sum(axis=1) / n - grand
        rest = np.maximum(0, sums[:, -1] - grand - of_items - of_raters)
        items, between = of_items / (n - 1), of_raters / (raters - 1)
        error = rest / ((n - 1) * (raters - 1))
        variance = _varying(items + (raters - 1) * error + raters * (between - error) / n)
        return (items - error) / variance, variance / raters

    return _interval(parts, whole, tasks, measure)


def flip_chance(ratings: Sequence[float], threshold: float) -> float:
    """Return the probability that two of the ratings are on different sides of the threshold."""
    above = sum(map(int, mark_passed(ratings, threshold)))
    n = len(ratings)
    return 2 * above * (n - above) / (n * (n - 1))


def mark_passed(ratings: Sequence[float], threshold: float) -> list[float]:
    """Return 1 for each rating that reaches the threshold, else 0."""
    return [float(value >= threshold - ROUNDING) for value in ratings]


def measure_agreement(table: Ratings, tasks: Sequence[str], *, threshold: float) -> Agreement:
    """Return all agreement measures of a table of scores; `tasks` has the task of each row."""
    items = [given for row in table if len(given := _given(row)) > 1]
    sides = [
        [None if value is None else mark_passed([value], threshold)[0] for value in row]
        for row in table
    ]
    return Agreement(
        raters=max(map(len, table), default=0),
        leaves=len(items),
        alpha=compute_alpha(table, tasks),
        pass_alpha=compute_alpha(sides, tasks, top=1),
        ac1=compute_ac1(sides, tasks),
        icc=compute_icc(table, tasks),
        kappa=compute_kappa(table, tasks),
        spread=math.sqrt(fmean(map(variance, items))) if items else None,
        flip_rate=_flips(table, tasks, threshold) if items else None,
    )


def _flips(table: Ratings, tasks: Sequence[str], threshold: float) -> Interval:
    chances: dict[str, list[float]] = {}
    for row, task in zip(table, tasks, strict=True):
        if len(given := _given(row)) > 1:
            chances.setdefault(task, []).append(flip_chance(given, threshold))
    own = chances.values()
    return compute_interval(Ratio(list(map(sum, own)), [float(len(one)) for one in own]))


def _interval(
    parts: Array, paired: npt.NDArray[np.bool_], tasks: Sequence[str], measure: Measure
) -> Interval | None:
    """Return the coefficient of all items with its jackknife interval.

    The interval is -1 to 1 if there is only one task, or if one task has all the variance.
    """
    if not paired.any():
        return None
    names, indexes = np.unique(np.asarray(tasks, dtype=str), return_inverse=True)
    sums = np.zeros((len(names), parts.shape[1]))
    np.add.at(sums, indexes, parts)
    items = np.bincount(indexes, weights=paired)
    sums = sums[sums.any(axis=1)]
    with np.errstate(divide="ignore", invalid="ignore"):
        (value,), (chance,) = measure(sums.sum(axis=0, keepdims=True))
        left = measure(sums.sum(axis=0) - sums)[0]
    if not np.isfinite(value):
        return None
    own = effective_tasks(items)
    low, high = -1.0, 1.0
    if own > 1 and np.isfinite(left).all():
        differing = min(1.0, max(0.0, (1 - value) * chance))
        trials = _trials(differing, (left - left.mean()) * chance) or own
        bounds = score_bounds(differing, trials, float(stdtrit(own - 1, (1 + LEVEL) / 2)))
        low, high = max(low, 1 - bounds[1] / chance), 1 - bounds[0] / chance
    return Interval(
        estimate=float(value),
        low=float(low),
        high=float(high),
        level=LEVEL,
        n=int(np.count_nonzero(items)),
        method="jackknife",
    )


def _trials(differing: float, moved: Array) -> float:
    """Return how many independent trials have the same variance; 0 if nothing varies."""
    squares = float((moved**2).sum())
    nominal = differing * (1 - differing)
    if squares <= ROUNDING**2 or nominal <= 0:
        return 0.0
    skewness = float((moved**3).sum()) ** 2 / squares**3
    variance = squares * (len(moved) - 1) / len(moved)
    return nominal / (variance * (1 + SKEW_OF_ONE * skewness))


def _moments(one: Array, two: Array) -> Array:
    """Return the terms of a kappa for each item that both raters rated."""
    both = np.isfinite(one) & np.isfinite(two)
    first, second = np.where(both, one, 0), np.where(both, two, 0)
    return np.column_stack([both, first, second, first**2, second**2, (first - second) ** 2])


def _kappa(sums: Array) -> tuple[Array, Array]:
    """Return kappa and the squared difference of ratings that are paired at random."""
    n, first, second, first_squares, second_squares, apart = sums.T
    chance = _varying((first_squares + second_squares) / n - 2 * first * second / n**2)
    return 1 - apart / n / chance, chance


def _varying(chance: Array) -> Array:
    """Replace values without variance by NaN."""
    return np.where(chance > ROUNDING, chance, np.nan)


def _values(table: Ratings) -> Array:
    """Return the ratings as an array, with NaN for missing ones."""
    width = max(map(len, table), default=0)
    return np.array([list(row) for row in table], dtype=np.float64).reshape(len(table), width)


def _given(row: Sequence[float | None]) -> list[float]:
    return [value for value in row if value is not None]
