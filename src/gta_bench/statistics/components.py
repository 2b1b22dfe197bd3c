"""Harness or model? Variance components of a design in which all are crossed with all tasks."""

from collections.abc import Sequence
from itertools import combinations
from typing import get_args

import numpy as np
import numpy.typing as npt

from gta_bench.records.statistics import Source, VarianceComponents

Array = npt.NDArray[np.float64]
Axes = tuple[int, ...]

HARNESS, MODEL, TASK = 0, 1, 2
EFFECTS: dict[Axes, Source] = {
    (HARNESS,): "harness",
    (MODEL,): "model",
    (TASK,): "task",
    (HARNESS, MODEL): "harness x model",
    (HARNESS, TASK): "harness x task",
    (MODEL, TASK): "model x task",
    (HARNESS, MODEL, TASK): "harness x model x task",
}


def variance_components(
    scores: Sequence[Sequence[Sequence[Sequence[float]]]],
) -> VarianceComponents:
    """Scores by harness, model, task and run; every cell is there, every factor is random.

    Mean squares are set equal to what they are expected to be (Searle, Casella, McCulloch 1992).
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 4 or min(table.shape[:3]) < 2:
        raise ValueError("components need two harnesses, two models and two tasks, all crossed")
    runs = table.shape[3]
    cells = table.mean(axis=3)
    variance: dict[Source, float] = {}
    if runs > 1:
        variance["run"] = float(table.var(axis=3, ddof=1).mean())
    for axes, name in EFFECTS.items():
        variance[name] = _component(cells, axes) - (
            variance.get("run", 0.0) / runs if len(axes) == 3 else 0.0
        )
    total = sum(max(0.0, value) for value in variance.values())
    ordered = {name: variance[name] for name in get_args(Source) if name in variance}
    return VarianceComponents(
        harnesses=table.shape[HARNESS],
        models=table.shape[MODEL],
        tasks=table.shape[TASK],
        runs=runs,
        variance=ordered,
        share={name: max(0.0, value) / total if total else 0.0 for name, value in ordered.items()},
    )


def _component(cells: Array, axes: Axes) -> float:
    """Mean squares of the effect and of all that contain it, with alternating signs."""
    others = [axis for axis in range(3) if axis not in axes]
    signed = 0.0
    for size in range(len(others) + 1):
        for added in combinations(others, size):
            signed += (-1) ** size * _mean_square(cells, (*axes, *added))
    return signed / float(np.prod([cells.shape[axis] for axis in others]))


def _mean_square(cells: Array, axes: Axes) -> float:
    """Of one effect: the cells' means over the other axes, less all lower effects."""
    effect = cells.mean(axis=tuple(axis for axis in range(3) if axis not in axes), keepdims=True)
    for axis in axes:
        effect = effect - effect.mean(axis=axis, keepdims=True)
    repeated = cells.size / effect.size
    freedom = np.prod([cells.shape[axis] - 1 for axis in axes])
    return float(repeated * (effect**2).sum() / freedom)
