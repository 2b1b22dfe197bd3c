"""Prediction-powered rates: a judge scored everything, people labeled a random part of it.

The estimate is the judge's rate on everything plus the difference between people and judge on the
labeled part (Angelopoulos et al. 2023). The judge's weight minimizes the variance (PPI++), so an
uninformative judge gets weight 0. The interval is Wilson's, with the effective trials of the labels
times the factor by which the judge reduces the variance. The sampling unit is the task.
docs/measurements.md has the coverage and width.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.records.statistics import Interval, IntervalMethod
from gta_bench.statistics.pooled import (
    ROUNDING,
    Ratio,
    Worth,
    compute_difference,
    effective_tasks,
    quantile_of,
    score_interval,
    task_influence,
    worth_of,
)

_Array = npt.NDArray[np.float64]
# If judge and labels agree on everything, or always differ by the same amount, this many units are
# assumed to differ. Chosen by simulation (tests/measure/test_simulations.py): with larger values, a
# judge without errors got wider intervals than a judge with few errors.
UNSEEN: Final = 0.5
# Errors closer than this are equal: scores are sums and quotients of floats.
ERRORS_ALIKE: Final = 1e-9
# Labels of no more effective tasks than this do not show how tasks vary.
ONE_TASK: Final = 1 + 1e-6


class JudgedPart(NamedTuple):
    """One unit: how much of `whole` the judge passes, and how much people pass if they labeled it.

    `chance` is the probability of being drawn for labeling, up to a common factor. A `sure` unit
    needs no label: `labeled` follows from a rule and says nothing about the judge.
    """

    task: str
    judged: float
    labeled: float | None
    whole: float = 1.0
    chance: float = 1.0
    sure: bool = False

    @property
    def by_people(self) -> bool:
        """Whether people labeled it."""
        return self.labeled is not None and not self.sure


class _Sums(NamedTuple):
    """Sums by task: what people and judge pass of the known units, and the judge of all units.

    `labeled` is the size of the known units and `asked` its part without the sure ones.
    """

    people: _Array
    judge: _Array
    labeled: _Array
    asked: _Array
    judged: _Array
    whole: _Array


class _Labeled(NamedTuple):
    """What people and judge pass of a labeled task, its size, and its size without sure units."""

    people: float
    whole: float
    judge: float
    asked: float

    @property
    def error(self) -> float:
        return (self.judge - self.people) / self.whole


class _Fit(NamedTuple):
    """A corrected rate, the influence of each task, and the variance of unobserved errors."""

    interval: Interval
    moved: dict[str, float]
    unseen: float

    @property
    def error(self) -> float:
        return math.sqrt(sum(one**2 for one in self.moved.values()) + self.unseen)


def estimate_rate(
    parts: Sequence[JudgedPart], *, top: float = 1.0, level: float = 0.95
) -> Interval:
    """Estimate the rate that people would give to all units, from the judge and the labels.

    Labeled units must be drawn at random. Returns the interval of the labels alone (method
    `labels-only`) if the judge adds nothing: everything is labeled, people label everything the
    same, or the corrected interval would be wider.
    """
    return _fit(parts, top, level).interval


def estimate_difference(
    first: Sequence[JudgedPart],
    second: Sequence[JudgedPart],
    *,
    top: float = 1.0,
    level: float = 0.95,
) -> Interval:
    """Estimate the difference of two corrected rates, first minus second, on the same tasks.

    Each rate is corrected by its own labels, since a judge may favor one system. The intervals are
    combined as in Newcombe's method for paired shares (1998, method 10), with the correlation of
    the task influences. If the judge adds nothing to either rate, this is the difference of labels.

    A judge that makes the same errors on two similar systems shows no error in their difference;
    an allowance for unobserved errors keeps the interval from having almost no width.
    """
    one, two = (_fit(parts, top, level) for parts in (first, second))
    ours, theirs = (_labeled(parts) for parts in (first, second))
    methods: set[IntervalMethod] = {one.interval.method, two.interval.method}
    if methods == {"labels-only"} and ours.keys() == theirs.keys():
        sides = (
            Ratio(*zip(*(own[:2] for own in side), strict=True)) for side in _paired(ours, theirs)
        )
        alone = compute_difference(*sides, top=top, level=level).interval
        return alone.model_copy(update={"method": "labels-only"})
    together = sum(moved * two.moved.get(task, 0.0) for task, moved in one.moved.items())
    errors = one.error * two.error
    shared = together / errors if errors > ROUNDING else 0.0
    a, b = one.interval, two.interval
    gap = a.estimate - b.estimate
    more = 0.0 if one.unseen or two.unseen else _unseen_apart(ours, theirs, top, level)
    below = combine_margins(a.estimate - a.low, b.high - b.estimate, shared)
    above = combine_margins(a.high - a.estimate, b.estimate - b.low, shared)
    return Interval(
        estimate=gap,
        low=max(-top, gap - math.hypot(below, more)),
        high=min(top, gap + math.hypot(above, more)),
        level=level,
        n=min(a.n, b.n),
        method="labels-only" if methods == {"labels-only"} else "prediction-powered",
    )


def bias_variance(parts: Sequence[JudgedPart], *, top: float = 1.0) -> float | None:
    """Return the variance that correcting the judge adds to its rate; 0 if all is labeled.

    None if fewer than two tasks have labels, or one task has all the weight.
    """
    unsure = [part for part in parts if not part.sure]
    if not any(part.by_people for part in unsure):
        return None
    known = sum(part.whole for part in unsure if part.by_people)
    if (open_ := 1 - known / sum(part.whole for part in unsure)) <= 0:
        return 0.0
    sums = _by_task(parts)
    if (tasks := effective_tasks(sums.asked)) <= ONE_TASK:
        return None
    moved = task_influence(Ratio(sums.people - sums.judge, sums.labeled))
    seen = float(moved @ moved) * tasks / (tasks - 1)
    return open_ * (seen + _unseen(parts, top))


def combine_margins(one: float, two: float, shared: float) -> float:
    """Return how far a difference of two estimates may be off, from both margins (Newcombe 1998).

    `shared` is the correlation of the two estimates.
    """
    return math.sqrt(max(0.0, one**2 + two**2 - 2 * shared * one * two))


def _labeled(parts: Sequence[JudgedPart]) -> dict[str, _Labeled]:
    """Return the labeled tasks."""
    sums = _by_task(parts)
    columns = (sums.people, sums.labeled, sums.judge, sums.asked)
    rows = map(_Labeled._make, zip(*(column.tolist() for column in columns), strict=True))
    every = dict(zip(_task_indexes(parts), rows, strict=True))
    return {task: own for task, own in every.items() if own.whole > 0}


def _paired(
    ours: Mapping[str, _Labeled], theirs: Mapping[str, _Labeled]
) -> tuple[list[_Labeled], list[_Labeled]]:
    """Return both sides of the tasks with labels on both, in the same order."""
    common = [task for task in ours if task in theirs]
    return [ours[task] for task in common], [theirs[task] for task in common]


def _unseen_apart(
    ours: Mapping[str, _Labeled], theirs: Mapping[str, _Labeled], top: float, level: float
) -> float:
    """Return how far unobserved errors can move a difference; 0 if the observed ones vary."""
    apart = [one.error - two.error for one, two in zip(*_paired(ours, theirs), strict=True)]
    if not apart or max(apart) - min(apart) > ERRORS_ALIKE:
        return 0.0
    found = []
    for side in (ours, theirs):
        asked = np.array([own.asked for own in side.values() if own.asked])
        share = float(asked.sum()) / sum(own.whole for own in side.values())
        tasks = effective_tasks(asked)
        found.append(quantile_of(tasks, level) * top * share * math.sqrt(UNSEEN) / tasks)
    return max(found)


def _fit(parts: Sequence[JudgedPart], top: float, level: float) -> _Fit:
    if not any(part.by_people for part in parts):
        raise ValueError("nothing is labeled")
    names, sums = _task_indexes(parts), _by_task(parts)
    chosen = sums.labeled > 0
    alone = Ratio(sums.people[chosen], sums.labeled[chosen])
    worth, n = _worth(alone, sums.asked[chosen], top), int(np.count_nonzero(sums.asked))
    labels = score_interval(alone.value, worth, top=top, level=level, n=n).model_copy(
        update={"method": "labels-only"}
    )
    every, labeled = Ratio(sums.judged, sums.whole), Ratio(sums.judge, sums.labeled)
    own = task_influence(Ratio(sums.people, sums.labeled))
    added = task_influence(every) - task_influence(labeled)
    variance, spread = float(own @ own), float(added @ added) + (unseen := _unseen(parts, top))
    weight = min(1.0, max(0.0, -float(own @ added) / spread)) if spread > ROUNDING else 0.0
    only = _Fit(labels, dict(zip(names, own.tolist(), strict=True)), 0.0)
    if weight == 0 or variance <= ROUNDING:
        return only
    moved = own + weight * added
    gain = variance / (float(moved @ moved) + weight**2 * unseen)
    estimate = min(top, max(0.0, alone.value + weight * (every.value - labeled.value)))
    better = worth._replace(trials=worth.trials * gain)
    found = score_interval(estimate, better, top=top, level=level, n=n)
    if found.high - found.low > labels.high - labels.low:
        return only
    return _Fit(
        found.model_copy(update={"method": "prediction-powered"}),
        dict(zip(names, moved.tolist(), strict=True)),
        weight**2 * unseen,
    )


def _worth(alone: Ratio, asked: _Array, top: float) -> Worth:
    """Return the sample size of the labels, which counts labeled tasks but not sure ones."""
    found, sizes = worth_of(alone, top=top), np.asarray(alone.denominators)
    if np.array_equal(asked, sizes):
        return found
    own = effective_tasks(asked)
    if 0 < alone.value < top:
        return found._replace(tasks=own)
    # Nothing varies: scale the trials, because the labels cover only a part of the known units.
    return Worth(own * float(sizes.sum() / asked.sum()), own)


def _task_indexes(parts: Sequence[JudgedPart]) -> dict[str, int]:
    """Return the index of each task in the sums."""
    return {name: index for index, name in enumerate(dict.fromkeys(part.task for part in parts))}


def _by_task(parts: Sequence[JudgedPart]) -> _Sums:
    """Sum by task; labeled units are weighted by the inverse of their probability."""
    names = _task_indexes(parts)
    known = [part for part in parts if part.labeled is not None]
    every = np.array([names[part.task] for part in parts])
    some = np.array([names[part.task] for part in known])
    weights = _weights(parts)
    sizes = weights * np.array([part.whole for part in known])

    def sum_up(indexes: npt.NDArray[np.int_], values: _Array) -> _Array:
        return np.bincount(indexes, values, len(names)).astype(np.float64)

    return _Sums(
        people=sum_up(some, weights * np.array([part.labeled for part in known])),
        judge=sum_up(some, weights * np.array([part.judged for part in known])),
        labeled=sum_up(some, sizes),
        asked=sum_up(some, sizes * np.array([not part.sure for part in known])),
        judged=sum_up(every, np.array([part.judged for part in parts])),
        whole=sum_up(every, np.array([part.whole for part in parts])),
    )


def _weights(parts: Sequence[JudgedPart]) -> _Array:
    """Return Hájek weights of the known units, exactly 1 if all chances are equal.

    Sure units have weight 1; labeled units together weigh as much as all units that are not sure.
    """
    known = [part for part in parts if part.labeled is not None]
    asked = np.array([part.by_people for part in known])
    chances = np.array([part.chance for part in known])
    found: _Array = np.where(asked, chances[asked].min() / chances, 1.0)
    if not asked.all():
        sizes = np.array([part.whole for part in known])
        size = sum(part.whole for part in parts if not part.sure)
        found[asked] *= size / float((found * sizes)[asked].sum())
    return found


def _unseen(parts: Sequence[JudgedPart], top: float) -> float:
    """Return the variance of unobserved differences; 0 if the observed ones vary."""
    known = [part for part in parts if part.labeled is not None]
    asked = np.array([part.by_people for part in known])
    errors = [
        part.judged - part.labeled for part in known if part.labeled is not None and part.by_people
    ]
    if max(errors) - min(errors) > ERRORS_ALIKE:
        return 0.0
    sizes = _weights(parts) * np.array([part.whole for part in known])
    return UNSEEN * top**2 * float(np.mean(sizes[asked] ** 2) / sizes.sum() ** 2)
