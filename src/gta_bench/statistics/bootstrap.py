"""Intervals of pooled scores, resampled by task: what belongs to one task is drawn together.

A pooled score is a ratio of sums over tasks: passed leaves to leaves, hits to calls, or, with
denominators of 1, a mean. The bootstrap is studentized: percentile and BCa intervals cover only
90 to 93 % with 30 tasks (docs/concepts/statistics.md has the comparison).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.records.statistics import Interval
from gta_bench.statistics.proportions import newcombe, wilson

Numbers = Sequence[float] | npt.NDArray[np.number[Any]]
Array = npt.NDArray[np.float64]

RESAMPLES = 2000
# With fewer tasks on one side resampling only repeats the same one or two, and intervals get too
# short; from three on they cover (tests/measure/test_simulations.py).
ENOUGH = 3
# Standard errors below are those of sums that should be 0.
ROUNDING = 1e-12
# Numbers held at once; so memory does not grow with the number of tasks.
BATCH = 1_000_000


class Ratio(NamedTuple):
    """A pooled score: its numerator and denominator in every task."""

    numerators: Numbers
    denominators: Numbers

    @property
    def value(self) -> float:
        """The pooled score itself."""
        return float(np.sum(self.numerators) / np.sum(self.denominators))


def clustered_ratio(
    ratio: Ratio, *, seed: int, top: float = 1.0, level: float = 0.95, resamples: int = RESAMPLES
) -> Interval:
    """The interval of a pooled score that lies between 0 and `top`.

    Where fewer than three tasks have any success, or any failure, or are unlike the others,
    Wilson's interval with the number of tasks stands in: it takes all leaves of a task as one.
    """
    if not 0 <= ratio.value <= top:
        raise ValueError(f"{ratio.value} does not lie between 0 and {top}")
    above = np.count_nonzero(np.asarray(ratio.numerators) > 0)
    below = np.count_nonzero(np.asarray(ratio.numerators) < top * np.asarray(ratio.denominators))
    n = len(ratio.numerators)
    parts = [(ratio, 1)]
    if min(above, below) < ENOUGH or not _varies(parts):
        wide = wilson(ratio.value / top * n, n, level=level)
        return Interval(
            estimate=ratio.value,
            low=wide.low * top,
            high=wide.high * top,
            level=level,
            n=n,
            method="wilson-tasks",
        )
    low, high = _bootstrap_t(parts, seed=seed, level=level, resamples=resamples)
    return Interval(
        estimate=ratio.value,
        low=max(0.0, low),
        high=min(top, high),
        level=level,
        n=n,
        method="bootstrap-t",
    )


def clustered_difference(
    first: Ratio,
    second: Ratio,
    *,
    seed: int,
    top: float = 1.0,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """First pooled score minus second on the same tasks in the same order, drawn as pairs.

    Where the two differ in fewer than three tasks, or in all but fewer than three by the same,
    Newcombe's interval stands in.
    """
    n = len(first.numerators)
    unequal = np.not_equal(first.numerators, second.numerators) | np.not_equal(
        first.denominators, second.denominators
    )
    parts = [(first, 1), (second, -1)]
    few = np.count_nonzero(unequal) < ENOUGH or not _varies(parts)
    if few:
        wide = newcombe(first.value / top * n, n, second.value / top * n, n, level=level)
        low, high = wide.low * top, wide.high * top
    else:
        low, high = _bootstrap_t(parts, seed=seed, level=level, resamples=resamples)
    return Interval(
        estimate=first.value - second.value,
        low=max(-top, low),
        high=min(top, high),
        level=level,
        n=n,
        method="newcombe-tasks" if few else "bootstrap-t",
    )


def drawn(n: int, *, seed: int, resamples: int) -> Iterator[Array]:
    """How often each of `n` tasks was drawn, one row a resample, in batches of bounded size."""
    random = np.random.default_rng(seed)
    step = max(1, BATCH // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        yield random.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)


def _varies(parts: Sequence[tuple[Ratio, int]]) -> bool:
    """Whether enough tasks are unlike the others.

    Resamples that miss those few have no spread of their own, and say nothing of one side.
    """
    moved = _influence(np.ones((1, len(parts[0][0].numerators))), parts)[1][0]
    most = np.max(np.abs(moved))
    if most <= ROUNDING:
        return False
    _, alike = np.unique(np.round(moved / most, 9), return_counts=True)
    return bool(len(moved) - np.max(alike) >= ENOUGH)


def _bootstrap_t(
    parts: Sequence[tuple[Ratio, int]], *, seed: int, level: float, resamples: int
) -> tuple[float, float]:
    n = len(parts[0][0].numerators)
    estimate, error = (float(one[0]) for one in _estimates(np.ones((1, n)), parts))
    studentized: list[Array] = []
    for weights in drawn(n, seed=seed, resamples=resamples):
        estimates, errors = _estimates(weights, parts)
        with np.errstate(divide="ignore", invalid="ignore"):
            studentized.append((estimates - estimate) / errors)
    values = np.concatenate(studentized)
    tail = (1 - level) / 2
    low, high = np.quantile(values[np.isfinite(values)], [tail, 1 - tail])
    return estimate - float(high) * error, estimate - float(low) * error


def _estimates(weights: Array, parts: Sequence[tuple[Ratio, int]]) -> tuple[Array, Array]:
    """The sum of the ratios and its standard error (linearized), for every row of weights."""
    n = weights.shape[1]
    estimates, influence = _influence(weights, parts)
    return estimates, np.sqrt(n / max(1, n - 1) * (weights * influence**2).sum(axis=1))


def _influence(weights: Array, parts: Sequence[tuple[Ratio, int]]) -> tuple[Array, Array]:
    """The sum of the ratios, and how much each task moves it, for every row of weights."""
    estimates = np.zeros(len(weights))
    influence = np.zeros(weights.shape)
    for ratio, sign in parts:
        numerators = np.asarray(ratio.numerators, dtype=np.float64)
        denominators = np.asarray(ratio.denominators, dtype=np.float64)
        whole = weights @ denominators
        with np.errstate(divide="ignore", invalid="ignore"):
            pooled = (weights @ numerators) / whole
            influence += sign * (numerators - np.outer(pooled, denominators)) / whole[:, None]
        estimates += sign * pooled
    return estimates, influence
