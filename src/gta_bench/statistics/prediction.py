"""Prediction-powered rates: a judge scored everything, people a random part of it.

The judge's rate on everything, plus by how much people differ from it on what they labelled
(Angelopoulos et al. 2023). The judge's weight is that with the smallest variance (PPI++), so that
a judge who says nothing is left out. The interval is Wilson's, with as many effective trials as the
labels have, times by how much the judge lowers the variance. Whatever belongs to one task counts
as one. docs/measurements.md has what it covers, and how wide it is.
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
    difference_of,
    effective_tasks,
    quantile_of,
    score_interval,
    worth_of,
)

_Array = npt.NDArray[np.float64]
# Where judge and labels agree on everything, or differ by the same everywhere, so many units are
# taken to differ nevertheless. Chosen by simulation (tests/measure/test_simulations.py): with more,
# a judge without errors had wider intervals than one with few.
UNSEEN: Final = 0.5
# Errors closer than this are the same: scores are sums and quotients.
ERRORS_ALIKE: Final = 1e-9
# Labels that are worth no more tasks than this do not tell how tasks differ.
ONE_TASK: Final = 1 + 1e-6


class JudgedPart(NamedTuple):
    """One unit: `judged` of `whole` by the judge, `labelled` of `whole` by people if they did.

    `chance` is the probability with which it was drawn for labelling, up to a common factor. What
    is `sure` needs no people: `labelled` is so by a rule, and says nothing of the judge.
    """

    task: str
    judged: float
    labelled: float | None
    whole: float = 1.0
    chance: float = 1.0
    sure: bool = False

    @property
    def by_people(self) -> bool:
        """Whether people labelled it."""
        return self.labelled is not None and not self.sure


class _Sums(NamedTuple):
    """By task: what people and judge pass of what is known, its size; the judge's of all.

    `asked` is the size of what people labelled, without what is sure.
    """

    people: _Array
    judge: _Array
    labelled: _Array
    asked: _Array
    judged: _Array
    whole: _Array


class _Labelled(NamedTuple):
    """What people and judge pass of a labelled task, and its size; of that without what is sure."""

    people: float
    whole: float
    judge: float
    asked: float

    @property
    def error(self) -> float:
        return (self.judge - self.people) / self.whole


class _Fit(NamedTuple):
    """A corrected rate with how much each task moves it, and the variance of errors not seen."""

    interval: Interval
    moved: dict[str, float]
    unseen: float

    @property
    def error(self) -> float:
        return math.sqrt(sum(one**2 for one in self.moved.values()) + self.unseen)


def corrected_rate(
    parts: Sequence[JudgedPart], *, top: float = 1.0, level: float = 0.95
) -> Interval:
    """What people would have found on all units, from the judge and what is labelled.

    Labelled units must be drawn at random. The labels' own interval is returned (`labels-only`)
    where the judge adds nothing: all is labelled, people say the same of all, or the interval would
    be wider.
    """
    return _fit(parts, top, level).interval


def corrected_difference(
    first: Sequence[JudgedPart],
    second: Sequence[JudgedPart],
    *,
    top: float = 1.0,
    level: float = 0.95,
) -> Interval:
    """First corrected rate minus second, of two systems on the same tasks.

    Each is corrected by its own labels, since a judge may favor one. The intervals of both are
    joined as in Newcombe's method for paired shares (1998, method 10), with the correlation of what
    the tasks do to either. Where the judge adds nothing to either, it is the difference of labels.

    A judge that errs alike on two systems that are alike shows no error of their difference:
    without an allowance for those not seen the interval would have hardly any width.
    """
    one, two = (_fit(parts, top, level) for parts in (first, second))
    ours, theirs = (_labelled(parts) for parts in (first, second))
    methods: set[IntervalMethod] = {one.interval.method, two.interval.method}
    if methods == {"labels-only"} and ours.keys() == theirs.keys():
        sides = (
            Ratio(*zip(*(own[:2] for own in side), strict=True)) for side in _paired(ours, theirs)
        )
        alone = difference_of(*sides, top=top, level=level).interval
        return alone.model_copy(update={"method": "labels-only"})
    together = sum(moved * two.moved.get(task, 0.0) for task, moved in one.moved.items())
    errors = one.error * two.error
    shared = together / errors if errors > ROUNDING else 0.0
    a, b = one.interval, two.interval
    gap = a.estimate - b.estimate
    more = 0.0 if one.unseen or two.unseen else _unseen_apart(ours, theirs, top, level)
    below = _joined(a.estimate - a.low, b.high - b.estimate, shared)
    above = _joined(a.high - a.estimate, b.estimate - b.low, shared)
    return Interval(
        estimate=gap,
        low=max(-top, gap - math.hypot(below, more)),
        high=min(top, gap + math.hypot(above, more)),
        level=level,
        n=min(a.n, b.n),
        method="labels-only" if methods == {"labels-only"} else "prediction-powered",
    )


def bias_variance(parts: Sequence[JudgedPart], *, top: float = 1.0) -> float | None:
    """What correcting the judge adds to the variance of its rate; 0 where all is labelled.

    None where labels do not tell: fewer than two tasks have them, or one has all the weight.
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
    moved = _influence(sums.people - sums.judge, sums.labelled)
    seen = float(moved @ moved) * tasks / (tasks - 1)
    return open_ * (seen + _unseen(parts, top))


def _joined(one: float, two: float, shared: float) -> float:
    return math.sqrt(max(0.0, one**2 + two**2 - 2 * shared * one * two))


def _labelled(parts: Sequence[JudgedPart]) -> dict[str, _Labelled]:
    """The labelled tasks."""
    sums = _by_task(parts)
    columns = (sums.people, sums.labelled, sums.judge, sums.asked)
    rows = map(_Labelled._make, zip(*(column.tolist() for column in columns), strict=True))
    every = dict(zip(_places(parts), rows, strict=True))
    return {task: own for task, own in every.items() if own.whole > 0}


def _paired(
    ours: Mapping[str, _Labelled], theirs: Mapping[str, _Labelled]
) -> tuple[list[_Labelled], list[_Labelled]]:
    """Both sides of the tasks that have labels on both, in the same order."""
    common = [task for task in ours if task in theirs]
    return [ours[task] for task in common], [theirs[task] for task in common]


def _unseen_apart(
    ours: Mapping[str, _Labelled], theirs: Mapping[str, _Labelled], top: float, level: float
) -> float:
    """How far errors that labels did not show can move a difference; 0 where seen ones vary."""
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
        raise ValueError("nothing is labelled")
    names, sums = _places(parts), _by_task(parts)
    chosen = sums.labelled > 0
    alone = Ratio(sums.people[chosen], sums.labelled[chosen])
    worth, n = _worth(alone, sums.asked[chosen], top), int(np.count_nonzero(sums.asked))
    labels = score_interval(alone.value, worth, top=top, level=level, n=n).model_copy(
        update={"method": "labels-only"}
    )
    own = _influence(sums.people, sums.labelled)
    added = _influence(sums.judged, sums.whole) - _influence(sums.judge, sums.labelled)
    variance, spread = float(own @ own), float(added @ added) + (unseen := _unseen(parts, top))
    weight = min(1.0, max(0.0, -float(own @ added) / spread)) if spread > ROUNDING else 0.0
    only = _Fit(labels, dict(zip(names, own.tolist(), strict=True)), 0.0)
    if weight == 0 or variance <= ROUNDING:
        return only
    moved = own + weight * added
    gain = variance / (float(moved @ moved) + weight**2 * unseen)
    shift = _rate(sums.judged, sums.whole) - _rate(sums.judge, sums.labelled)
    estimate = min(top, max(0.0, alone.value + weight * shift))
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
    """What the labels are worth: as many tasks as people labelled, however many are sure."""
    found, sizes = worth_of(alone, top=top), np.asarray(alone.denominators)
    if np.array_equal(asked, sizes):
        return found
    own = effective_tasks(asked)
    if 0 < alone.value < top:
        return found._replace(tasks=own)
    # Nothing varies. What people labelled is a part of all, and the rate the smaller by as much.
    return Worth(own * float(sizes.sum() / asked.sum()), own)


def _places(parts: Sequence[JudgedPart]) -> dict[str, int]:
    """Every task's place in sums."""
    return {name: place for place, name in enumerate(dict.fromkeys(part.task for part in parts))}


def _by_task(parts: Sequence[JudgedPart]) -> _Sums:
    """What is labelled weighs as much as it stands for: the less likely it was, the more."""
    names = _places(parts)
    known = [part for part in parts if part.labelled is not None]
    every = np.array([names[part.task] for part in parts])
    some = np.array([names[part.task] for part in known])
    weights = _weights(parts)
    sizes = weights * np.array([part.whole for part in known])

    def added(places: npt.NDArray[np.int_], values: _Array) -> _Array:
        return np.bincount(places, values, len(names)).astype(np.float64)

    return _Sums(
        people=added(some, weights * np.array([part.labelled for part in known])),
        judge=added(some, weights * np.array([part.judged for part in known])),
        labelled=added(some, sizes),
        asked=added(some, sizes * np.array([not part.sure for part in known])),
        judged=added(every, np.array([part.judged for part in parts])),
        whole=added(every, np.array([part.whole for part in parts])),
    )


def _weights(parts: Sequence[JudgedPart]) -> _Array:
    """Of what is known. Hájek's: one over the chance; exactly 1 where all chances are the same.

    What is sure weighs 1, and what people labelled as much as all that they could have been asked.
    """
    known = [part for part in parts if part.labelled is not None]
    asked = np.array([part.by_people for part in known])
    chances = np.array([part.chance for part in known])
    found: _Array = np.where(asked, chances[asked].min() / chances, 1.0)
    if not asked.all():
        sizes = np.array([part.whole for part in known])
        stands = sum(part.whole for part in parts if not part.sure)
        found[asked] *= stands / float((found * sizes)[asked].sum())
    return found


def _unseen(parts: Sequence[JudgedPart], top: float) -> float:
    """The variance of differences that the labels did not show; 0 where those they show vary."""
    known = [part for part in parts if part.labelled is not None]
    asked = np.array([part.by_people for part in known])
    errors = [
        part.judged - part.labelled
        for part in known
        if part.labelled is not None and part.by_people
    ]
    if max(errors) - min(errors) > ERRORS_ALIKE:
        return 0.0
    sizes = _weights(parts) * np.array([part.whole for part in known])
    return UNSEEN * top**2 * float(np.mean(sizes[asked] ** 2) / sizes.sum() ** 2)


def _rate(values: _Array, wholes: _Array) -> float:
    return float(values.sum() / wholes.sum())


def _influence(values: _Array, wholes: _Array) -> _Array:
    """How much each task moves a rate; the squares add up to its variance."""
    moved: _Array = (values - _rate(values, wholes) * wholes) / wholes.sum()
    return moved
