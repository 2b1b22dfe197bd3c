"""Agreement of raters with intervals: AC1, kappa, Krippendorff's alpha, ICC, flips at a threshold.

A table has a row for each item and a column for each rater, with None for a missing rating, or NaN
in an array, which takes much less memory. Each
coefficient is 1 minus the ratio of the observed disagreement to that expected by chance, computed
from sums over items. Its interval is a jackknife that leaves out one task at a time, with all of
its items. Estimates near 1 are skewed, so the disagreement gets a score interval with the number
of independent trials that have the same variance (see `pooled`).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit  # type: ignore[import-untyped]

from gta_bench.records.agreement import Agreement
from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import SKEW_OF_ONE, Ratio, compute_interval, effective_tasks
from gta_bench.statistics.proportions import score_bounds

Array = npt.NDArray[np.float64]
Ratings = Sequence[Sequence[float | None]] | Array
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
    parts = (paired, agreed * paired, given > 0, *shares.T)

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
    pairs = [*combinations(values.T, 2)]
    if not pairs:
        return None
    # Millions of items fit into memory pair by pair.
    parts = (part for one, two in pairs for part in _moments(one, two))

    def measure(sums: Array) -> tuple[Array, Array]:
        found = [_kappa(part) for part in np.split(sums, len(pairs), axis=1)]
        values, chances = (np.stack(side) for side in zip(*found, strict=True))
        known = np.isfinite(values)
        count = known.sum(axis=0)
        # A pair without variance has no kappa.
        means = [np.where(known, one, 0).sum(axis=0) / count for one in (values, chances)]
        return means[0], means[1]

    return _interval(parts, np.isfinite(values).sum(axis=1) > 1, tasks, measure)


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
    parts = (part * paired for part in (given, total, squares, within))

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
    parts = (whole, *known.T, known.sum(axis=1) ** 2, (known**2).sum(axis=1))

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


def mark_passed(ratings: Sequence[float], threshold: float) -> list[float]:
    """Return 1 for each rating that reaches the threshold, else 0."""
    return [float(value >= threshold - ROUNDING) for value in ratings]


def pad_ratings(counts: Sequence[int], ratings: Sequence[float], *, raters: int) -> Array:
    """Return a table of items with so many ratings each, which are given one after the other.

    >>> pad_ratings([2, 0, 1], [7, 8, 9], raters=2).tolist()
    [[7.0, 8.0], [nan, nan], [9.0, nan]]
    """
    table = np.full((len(counts), raters), np.nan)
    table[np.arange(raters) < np.asarray(counts)[:, None]] = ratings
    return table


def stack_ratings(columns: Sequence[Sequence[float]]) -> Array:
    """Return a table of the ratings of each rater, which are NaN where one is missing."""
    return np.column_stack([np.asarray(one) for one in columns])


def measure_agreement(table: Ratings, tasks: Sequence[str], *, threshold: float) -> Agreement:
    """Return all agreement measures of a table of scores; `tasks` has the task of each row."""
    values = _values(table)
    known = np.isfinite(values)
    paired = known.sum(axis=1) > 1
    sides = np.where(known, values >= threshold - ROUNDING, np.nan)
    return Agreement(
        raters=values.shape[1],
        leaves=int(paired.sum()),
        alpha=compute_alpha(values, tasks),
        pass_alpha=compute_alpha(sides, tasks, top=1),
        ac1=compute_ac1(sides, tasks),
        icc=compute_icc(values, tasks),
        kappa=compute_kappa(values, tasks),
        spread=float(np.sqrt(np.nanvar(values[paired], axis=1, ddof=1).mean()))
        if paired.any()
        else None,
        flip_rate=_flips(sides, tasks) if paired.any() else None,
    )


def _flips(sides: Array, tasks: Sequence[str]) -> Interval:
    """Return how often two ratings of an item are on different sides, pooled over tasks."""
    n, above = np.isfinite(sides).sum(axis=1), np.nansum(sides, axis=1)
    paired = n > 1
    chances = 2 * above * (n - above) / np.where(paired, n * (n - 1), 1)
    indexes = _index(tasks)[paired]
    found = np.unique(indexes, return_inverse=True)[1]
    sums = np.bincount(found, weights=chances[paired])
    return compute_interval(Ratio(sums.tolist(), np.bincount(found).astype(float).tolist()))


def _index(tasks: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the place of each item's task among all tasks by name."""
    places = {name: place for place, name in enumerate(sorted({*tasks}))}
    return np.fromiter(map(places.__getitem__, tasks), dtype=np.intp, count=len(tasks))


def _interval(
    parts: Iterable[Array], paired: npt.NDArray[np.bool_], tasks: Sequence[str], measure: Measure
) -> Interval | None:
    """Return the coefficient of all items, of which `parts` are terms, with its jackknife interval.

    The interval is -1 to 1 if there is only one task, or if one task has all the variance.
    """
    if not paired.any():
        return None
    indexes = _index(tasks)
    sums = np.column_stack([np.bincount(indexes, weights=part) for part in parts])
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


def _moments(one: Array, two: Array) -> tuple[Array, ...]:
    """Return the terms of a kappa for each item that both raters rated."""
    both = np.isfinite(one) & np.isfinite(two)
    first, second = np.where(both, one, 0), np.where(both, two, 0)
    return both.astype(np.float64), first, second, first**2, second**2, (first - second) ** 2


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
    if isinstance(table, np.ndarray):
        return table
    width = max(map(len, table), default=0)
    return np.array([list(row) for row in table], dtype=np.float64).reshape(len(table), width)
