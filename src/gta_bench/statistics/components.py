"""Variance components of a balanced design: tasks x models x agents x runs.

Tasks and runs are random, models and agents are those of the design. The variance of one score, of
a task drawn at random by any system of the design, is the sum of the parts. With means over runs,
the analysis of variance estimates each part without bias (Cornfield and Tukey 1956).
"""

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from gta_bench.records.statistics import Interval, VarianceComponent, VarianceSource
from gta_bench.statistics.pooled import quantile_of

_Array = npt.NDArray[np.float64]
_Source = tuple[str, ...]
_FACTORS = ("task", "model", "agent")
_RUN = ("run",)


def estimate_components(
    scores: _Array, *, level: float = 0.95, most: float = math.inf
) -> tuple[VarianceComponent, ...]:
    """Return all parts of the variance; `scores` has axes for tasks, models, agents and runs.

    Needs two tasks. A factor with one level has no part. With one run, the variance of runs is
    estimated by the highest interaction with tasks, from which it cannot be separated. Intervals
    are by the jackknife over tasks: the wider one of a variance and of its square root. `most` is
    the largest variance that scores can have.

    >>> import numpy as np
    >>> scores = np.array([[[[0.0, 0.0]], [[1.0, 0.0]]], [[[0.0, 1.0]], [[1.0, 1.0]]]])
    >>> [(one.source, round(one.variance.estimate, 3)) for one in estimate_components(scores)]
    [('task', 0.062), ('model', 0.062), ('task x model', 0.0), ('run', 0.25)]
    """
    tasks = scores.shape[0]
    if tasks < 2:
        raise ValueError("variance components need two tasks")
    found = _estimate(scores)
    kept = np.arange(tasks - 1)
    others = np.where(kept[None, :] < np.arange(tasks)[:, None], kept, kept + 1)
    # With two tasks there is no variance without one of them.
    without = _estimate(scores[others]) if tasks > 2 else {}
    whole = sum(max(0.0, float(one)) for one in found.values())
    parts = []
    for source, one in found.items():
        variance = float(one)
        error = _jackknife(without[source]) if without else math.inf
        parts.append(
            VarianceComponent(
                source=_name(source),
                variance=_interval(variance, error, tasks, level, most),
                share=max(0.0, variance) / whole if whole else 0.0,
                with_runs=scores.shape[3] == 1 and source == _highest(scores),
            )
        )
    return tuple(parts)


def _estimate(scores: _Array) -> dict[_Source, _Array]:
    """Return the parts, for every design if `scores` has an axis of designs before the others."""
    tasks, models, agents, runs = scores.shape[-4:]
    sizes = {"task": tasks, "model": models, "agent": agents}
    squares = _square_effects(scores.mean(axis=-1), sizes)
    highest = _highest(scores)
    scale = tasks / (tasks - 1)
    if runs > 1:
        noise = scores.var(axis=-1, ddof=1).mean(axis=(-3, -2, -1))
    else:
        noise = scale * squares[highest] / _noise_share(highest, sizes)
    found: dict[_Source, _Array] = {}
    for source, square in squares.items():
        if "task" not in source:
            found[source] = square - squares["task", *source] / (tasks - 1)
        elif runs > 1 or source != highest:
            found[source] = scale * square - noise / runs * _noise_share(source, sizes)
        else:
            found[source] = noise
    if runs > 1:
        found[_RUN] = noise
    return found


def _square_effects(means: _Array, sizes: Mapping[str, int]) -> dict[_Source, _Array]:
    """Return the mean squared effect of every factor with two levels, and of their interactions."""
    varying = [name for name in _FACTORS if sizes[name] > 1]
    sources = [one for size in range(len(varying) + 1) for one in combinations(varying, size)]
    own: dict[_Source, _Array] = {}
    for source in sources:
        axes = tuple(place - 3 for place, name in enumerate(_FACTORS) if name not in source)
        own[source] = means.mean(axis=axes, keepdims=True) if axes else means
    found = {}
    for source in sources[1:]:
        below = (one for size in range(len(source) + 1) for one in combinations(source, size))
        effect = sum((-1) ** (len(source) - len(one)) * own[one] for one in below)
        found[source] = np.square(effect).mean(axis=(-3, -2, -1))
    return found


def _noise_share(source: _Source, sizes: Mapping[str, int]) -> float:
    """Return which part of the variance of independent noise is in this part of a task's scores."""
    shares = (1 - 1 / sizes[name] if name in source else 1 / sizes[name] for name in _FACTORS[1:])
    return math.prod(shares)


def _highest(scores: _Array) -> _Source:
    """Return the interaction of all factors that have two levels."""
    return tuple(name for name, size in zip(_FACTORS, scores.shape[-4:-1], strict=True) if size > 1)


def _name(source: _Source) -> VarianceSource:
    name: VarianceSource = " x ".join(source)  # type: ignore[assignment]
    return name


def _jackknife(without: _Array) -> float:
    """Return the standard error from the values without each of the tasks."""
    tasks = len(without)
    return math.sqrt((tasks - 1) / tasks * float(np.square(without - without.mean()).sum()))


def _interval(variance: float, error: float, tasks: int, level: float, most: float) -> Interval:
    """Return the wider interval of the variance and of its square root; neither is below 0."""
    # Where no task makes a difference, their spread says nothing of other tasks.
    reach = quantile_of(tasks, level) * error if error else math.inf
    known = max(0.0, variance)
    low, high = max(0.0, variance - reach), known + reach
    if variance > 0 and math.isfinite(reach):
        root, half = math.sqrt(variance), reach / (2 * math.sqrt(variance))
        low, high = min(low, max(0.0, root - half) ** 2), max(high, (root + half) ** 2)
    if math.isfinite(high):
        high = max(known, min(high, most))
    return Interval(estimate=known, low=low, high=high, level=level, n=tasks, method="jackknife")
