"""Rates of a judge on leaves whose truth is known, and scores corrected for the judge's errors.

A judge passes a share of the leaves that hold (specificity) and fails a share of those that do not
(sensitivity), so the share that it passes is a known function of the share that holds (Rogan and
Gladen 1978). The interval has all true shares at which the observed one is within the margins of
the three rates, each with a score interval over its own tasks, combined as in Newcombe's method
(1998, method 10) and solved like Fieller's. It widens as the judge gets closer to chance.
"""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from gta_bench.records.ceiling import LEAST_TASKS, CorrectionProblem, TaskErrors
from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import (
    ROUNDING,
    Ratio,
    compute_interval,
    find_root,
    task_influence,
)
from gta_bench.statistics.prediction import combine_margins

LEVEL: Final = 0.95


class JudgeErrors(NamedTuple):
    """Both rates of a judge, and the correlation of their errors over tasks."""

    sensitivity: Interval
    specificity: Interval
    shared: float

    @property
    def gain(self) -> float:
        """How much more often the judge passes a leaf that holds than one that does not."""
        return self.sensitivity.estimate + self.specificity.estimate - 1

    @property
    def least_gain(self) -> float:
        """The lower end of the interval of the gain."""
        one, two = self.sensitivity, self.specificity
        margins = one.estimate - one.low, two.estimate - two.low
        return self.gain - combine_margins(*margins, -self.shared)


def measure_rate(parts: Iterable[tuple[int, int]]) -> Interval | None:
    """Return a rate from hits and sizes by task; None if all sizes are 0."""
    known = [(hits, size) for hits, size in parts if size]
    if not known:
        return None
    return compute_interval(Ratio([one for one, _ in known], [size for _, size in known]))


def measure_errors(rows: Iterable[TaskErrors]) -> JudgeErrors | None:
    """Return both rates; None if no leaf is broken, or none is intact."""
    tasks = list(rows)
    sensitivity = measure_rate((one.found, one.broken) for one in tasks)
    specificity = measure_rate((one.passed, one.intact) for one in tasks)
    if sensitivity is None or specificity is None:
        return None
    found = Ratio([one.found for one in tasks], [one.broken for one in tasks])
    passed = Ratio([one.passed for one in tasks], [one.intact for one in tasks])
    moved = task_influence(found), task_influence(passed)
    errors = math.sqrt(float(moved[0] @ moved[0]) * float(moved[1] @ moved[1]))
    shared = float(moved[0] @ moved[1]) / errors if errors > ROUNDING else 0.0
    return JudgeErrors(sensitivity, specificity, shared)


class JudgedShare(NamedTuple):
    """What was passed in each task of a run, of all its leaves.

    `passed` and `judged` are shares of all leaves: `passed` for sure, without the judge, and
    decided by the judge.
    """

    score: Ratio
    passed: float = 0.0
    judged: float = 1.0


def correct_share(
    share: JudgedShare, errors: JudgeErrors, *, level: float = LEVEL
) -> Interval | CorrectionProblem:
    """Return the share of leaves that hold, given what the judge passed and how often it errs.

    Returns `few` if the judge's errors are known from fewer than LEAST_TASKS tasks, `blind` if it
    is not significantly better than chance, and `apart` if it passed fewer leaves than if all were
    broken, or more than if none were, beyond all intervals.

    >>> from gta_bench.records.ceiling import TaskErrors
    >>> from gta_bench.records.statistics import Interval
    >>> from gta_bench.statistics.pooled import Ratio
    >>> one = TaskErrors(task="one", found=9, broken=10, passed=8, intact=10)
    >>> rates = [one.model_copy(update={"task": str(number)}) for number in range(10)]
    >>> errors = measure_errors(rates)
    >>> assert errors is not None
    >>> found = correct_share(JudgedShare(Ratio([45] * 20, [100] * 20)), errors)
    >>> assert isinstance(found, Interval)
    >>> round(found.estimate, 3)
    0.5
    """
    if min(errors.sensitivity.n, errors.specificity.n) < LEAST_TASKS:
        return "few"
    if errors.least_gain <= 0:
        return "blind"
    seen = compute_interval(share.score, level=level)
    sens, spec = errors.sensitivity, errors.specificity
    most = share.judged

    def excess(holds: float) -> float:
        """What the judge passed beyond what it would with this share of leaves intact."""
        passes = holds * spec.estimate + (most - holds) * (1 - sens.estimate)
        return seen.estimate - share.passed - passes

    def least(holds: float) -> float:
        ends = holds * (spec.high - spec.estimate), (most - holds) * (sens.estimate - sens.low)
        own = seen.estimate - seen.low
        return excess(holds) - math.hypot(own, combine_margins(*ends, errors.shared))

    def greatest(holds: float) -> float:
        ends = holds * (spec.estimate - spec.low), (most - holds) * (sens.high - sens.estimate)
        own = seen.high - seen.estimate
        return excess(holds) + math.hypot(own, combine_margins(*ends, errors.shared))

    if greatest(0.0) < 0 or least(most) > 0:
        return "apart"
    estimate = float(np.clip(excess(0.0) / errors.gain, 0.0, most))
    low, high = find_root(least, 0.0, estimate), find_root(greatest, estimate, most)
    return Interval(
        estimate=share.passed + estimate,
        low=share.passed + low,
        high=share.passed + high,
        level=level,
        n=min(seen.n, sens.n, spec.n),
        method="rogan-gladen",
    )
