"""What is missing could have gone either way: the worst and the best case, and what turns a sign.

Tasks do not go missing at random: long ones time out, hard ones crash. So nothing is concluded
that the missing ones could turn.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.records.statistics import Bounds, Difference, Envelope
from gta_bench.statistics.pooled import Ratio, difference_of

_Array = npt.NDArray[np.float64]


class Side(NamedTuple):
    """One system, task by task: its sums over what was seen, and how much was not."""

    values: _Array
    seen: _Array
    missing: _Array

    @property
    def whole(self) -> _Array:
        """All that there is to measure."""
        return self.seen + self.missing

    @property
    def worst(self) -> Ratio:
        """The score if all that is missing fails."""
        return Ratio(self.values, self.whole)

    def best(self, top: float) -> Ratio:
        """The score if all that is missing succeeds."""
        return Ratio(self.values + top * self.missing, self.whole)


def bounds_of(side: Side, *, top: float = 1.0) -> Bounds:
    """The pooled score in the worst and in the best case."""
    return Bounds(
        missing=int(np.count_nonzero(side.missing)),
        low=side.worst.value,
        high=side.best(top).value,
    )


def envelope_of(
    first: Side, second: Side, observed: Difference, *, top: float = 1.0, level: float = 0.95
) -> Envelope:
    """First minus second over all that could be missing, on the same tasks in the same order.

    `p_value` is the largest of the observed difference, both extremes and the way from one to the
    other, task by task; 1 if their signs differ.
    """
    open_tasks = np.flatnonzero((first.missing > 0) | (second.missing > 0)).tolist()
    least, most = (
        _filled(first, second, gone, top, level) for gone in (open_tasks[:0], open_tasks)
    )
    ends = [one.interval.estimate for one in (least, observed, most)]
    same = min(ends) > 0 or max(ends) < 0
    p_value = max(one.p_value for one in (least, observed, most)) if same else 1.0
    if p_value < 1 - level:
        # A pooled score may vary more halfway: the largest tasks first, and last.
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
    """What is missing in these tasks goes for the first system, the rest against it."""
    chosen = np.zeros(len(first.missing))
    chosen[list(gone)] = top
    one = Ratio(first.values + chosen * first.missing, first.whole)
    two = Ratio(second.values + (top - chosen) * second.missing, second.whole)
    return difference_of(one, two, top=top, level=level)


def _tipping(first: Side, second: Side, gap: float, top: float) -> int | None:
    """How many missing tasks must go against the system that is ahead until it is not.

    The others are taken to go as those that were seen; 0 where that is enough. None if all of them
    are too few.
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
