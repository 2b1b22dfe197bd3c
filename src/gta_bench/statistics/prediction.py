"""Prediction-powered rates: a judge scored everything, people a random part of the tasks.

The judge's rate on the tasks that people did not label, plus by how much it is wrong on those that
they did (Angelopoulos et al. 2023), weighted as suits the judge's worth (PPI++). Whatever belongs
to one task counts as one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri  # type: ignore[import-untyped]

from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import Ratio, interval_of

Array = npt.NDArray[np.float64]
# With fewer tasks in which judge and people differ, nobody knows how often they do.
ENOUGH = 3
# Rows of sums by task: what people and judge pass of labelled units, their size; then the others.
PEOPLE, JUDGE, LABELLED, OTHERS, UNLABELLED = range(5)


class JudgedPart(NamedTuple):
    """One unit: `judged` of `whole` by the judge, `labelled` of `whole` by people if they did."""

    task: str
    judged: float
    labelled: float | None
    whole: float = 1.0


def corrected_rate(
    parts: Sequence[JudgedPart], *, top: float = 1.0, level: float = 0.95
) -> Interval:
    """What people would have found on all units, from the judge and the labelled part.

    The labelled tasks must be a random choice. Where judge and people differ in fewer than three
    of them, nobody knows how often they do, and the labelled tasks alone are taken.
    """
    sums = _by_task(parts)
    labelled = sums[LABELLED] > 0
    if not labelled.any():
        raise ValueError("nothing is labelled")
    estimate = float(_estimate(sums.sum(axis=1), sums))
    differing = np.count_nonzero(sums[PEOPLE] != sums[JUDGE])
    if differing < ENOUGH or not sums[UNLABELLED].any() or not 0 < estimate < top:
        alone = Ratio(sums[PEOPLE, labelled], sums[LABELLED, labelled])
        found = interval_of(alone, top=top, level=level)
        return found.model_copy(update={"method": "labels-only"})
    n = int(labelled.sum())
    reach = float(ndtri((1 + level) / 2)) * _error(sums)
    # On the scale of log odds intervals of small and large rates are as skew as they should be.
    share = estimate / top
    odds, half = np.log(share / (1 - share)), reach / top / (share * (1 - share))
    return Interval(
        estimate=estimate,
        low=top * float(expit(odds - half)),
        high=top * float(expit(odds + half)),
        level=level,
        n=n,
        method="prediction-powered",
    )


def _by_task(parts: Sequence[JudgedPart]) -> Array:
    """A column for each task, a row for each kind of sum."""
    tasks = {name: place for place, name in enumerate(dict.fromkeys(part.task for part in parts))}
    sums = np.zeros((5, len(tasks)))
    for part in parts:
        if part.labelled is None:
            added = (0.0, 0.0, 0.0, part.judged, part.whole)
        else:
            added = (part.labelled, part.judged, part.whole, 0.0, 0.0)
        sums[:, tasks[part.task]] += added
    return sums


def _estimate(totals: Array, sums: Array) -> Array:
    """The corrected rate from totals; the judge's weight is that with the smallest variance."""
    people, judge, labelled, others, unlabelled = totals
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = people / labelled, judge / labelled, others / unlabelled
        own = _influence(sums[PEOPLE], sums[LABELLED], rates[0], labelled)
        seen = _influence(sums[JUDGE], sums[LABELLED], rates[1], labelled)
        rest = _influence(sums[OTHERS], sums[UNLABELLED], rates[2], unlabelled)
        spread = np.sum((rest - seen) ** 2)
        # A judge that says the same of all tasks tells nothing of them.
        weight = -np.sum(own * (rest - seen)) / spread if spread > 0 else 0.0
        weight = np.clip(weight, 0.0, 1.0)
        found: Array = rates[0] + weight * (rates[2] - rates[1])
    return found


def _influence(values: Array, wholes: Array, rate: Array, whole: Array) -> Array:
    """How much each task moves a rate; the squares add up to its variance."""
    moved: Array = (values - rate * wholes) / whole
    return moved


def _error(sums: Array) -> float:
    """The standard error: each task left out once (jackknife), labelled ones and others apart."""
    totals = sums.sum(axis=1)
    variance = 0.0
    for chosen in (sums[LABELLED] > 0, sums[LABELLED] == 0):
        size = int(chosen.sum())
        left = [
            float(_estimate(totals - sums[:, place], np.delete(sums, place, axis=1)))
            for place in np.flatnonzero(chosen)
        ]
        if size > 1:
            variance += (size - 1) * float(np.var(left))
    return float(np.sqrt(variance))
