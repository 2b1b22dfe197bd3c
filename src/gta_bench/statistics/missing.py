"""Bounds for missing results: the worst case, the best case, and what would reverse a difference.

Tasks are not missing at random: long ones time out and hard ones crash. So a conclusion counts only
if no outcome of the missing tasks could reverse it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.records.statistics import Bounds, Difference, Envelope
from gta_bench.statistics.pooled import Ratio, compute_difference

_Array = npt.NDArray[np.float64]


class Side(NamedTuple):
    """One system by task: its sums over observed parts, and the sizes observed and missing."""

    values: _Array
    seen: _Array
    missing: _Array

    @property
    def whole(self) -> _Array:
        """The size of each task, observed and missing."""
        return self.seen + self.missing


def find_bounds(side: Side, *, top: float = 1.0) -> Bounds:
    """Return the pooled score if everything missing fails, and if everything succeeds."""
    return Bounds(
        missing=int(np.count_nonzero(side.missing)),
        low=Ratio(side.values, side.whole).value,
        high=Ratio(side.values + top * side.missing, side.whole).value,
    )


def find_envelope(
    first: Side, second: Side, observed: Difference, *, top: float = 1.0, level: float = 0.95
) -> Envelope:
    """Return the range of first minus second over all outcomes of what is missing.

    Both sides have the same tasks in the same order. `p_value` is the largest one of the observed
    difference, both extremes, and the steps from one extreme to the other; 1 if signs differ.
    """
    open_tasks = np.flatnonzero((first.missing > 0) | (second.missing > 0)).tolist()
    least, most = (
        _filled(first, second, gone, top, level) for gone in (open_tasks[:0], open_tasks)
    )
    ends = [one.interval.estimate for one in (least, observed, most)]
    same = min(ends) > 0 or max(ends) < 0
    p_value = max(one.p_value for one in (least, observed, most)) if same else 1.0
    if p_value < 1 - level:
        # A pooled score may vary more between the extremes: try the largest tasks first and last.
        order = sorted(open_tasks, key=lambda task: first.missing[task] + second.missing[task])
        steps = (way[:count] for way in (order, order[::-1]) for count in range(1, len(order)))
        between = (_filled(first, second, gone, top, level).p_value for gone in steps)
        p_value = max((p_value, *between))
    return Envelope(
        missing=len(open_tasks),
        low=least.interval.estimate,
        high=most.interval.estimate,
        p_value=p_value,
        tipping=_tipping(first, second, observed.interval.estimate, top),
    )


def _filled(first: Side, second: Side, gone: Sequence[int], top: float, level: float) -> Difference:
    """Compare with missing parts of these tasks in favor of the first system, others against it."""
    chosen = np.zeros(len(first.missing))
    chosen[list(gone)] = top
    one = Ratio(first.values + chosen * first.missing, first.whole)
    two = Ratio(second.values + (top - chosen) * second.missing, second.whole)
    return compute_difference(one, two, top=top, level=level)


def _tipping(first: Side, second: Side, gap: float, top: float) -> int | None:
    """Return how many missing tasks the leading system must lose before it no longer leads.

    The other missing tasks are assumed to go like the observed ones. Returns 0 if that alone is
    enough, and None if the system leads even after losing all of them.
    """
    ahead, behind = (first, second) if gap >= 0 else (second, first)
    open_tasks = np.flatnonzero((ahead.missing > 0) | (behind.missing > 0))
    rates = [float(side.values.sum() / side.seen.sum()) for side in (ahead, behind)]
    sums = [
        float((side.values + rate * side.missing).sum())
        for side, rate in zip((ahead, behind), rates, strict=True)
    ]
    wholes = [float(side.whole.sum()) for side in (ahead, behind)]
    lost = rates[0] * ahead.missing / wholes[0] + (top - rates[1]) * behind.missing / wholes[1]
    left = sums[0] / wholes[0] - sums[1] / wholes[1]
    losses = [0.0, *sorted((float(lost[task]) for task in open_tasks), reverse=True)]
    for count, loss in enumerate(losses):
        left -= loss
        if left <= 1e-12:
            return count
    return None
