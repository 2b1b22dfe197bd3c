"""Balanced designs with known variances: tasks x models x agents x runs."""

from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Kind = Literal["normal", "passes"]
FACTORS = ("task", "model", "agent")


class Design(NamedTuple):
    """Means of the systems, and standard deviations of what varies with the task, and by run.

    `passes`: the same on the scale of a logistic curve, of which each run is a pass or a failure.
    """

    kind: Kind
    means: tuple[tuple[float, ...], ...]
    task: float
    task_model: float
    task_agent: float
    task_system: float
    run: float = 0.0


def draw(design: Design, tasks: int, random: np.random.Generator) -> Array:
    """The expected scores of new tasks, by task, model and agent."""
    means = np.asarray(design.means)
    models, agents = means.shape
    parts = (
        ((tasks, 1, 1), design.task),
        ((tasks, models, 1), design.task_model),
        ((tasks, 1, agents), design.task_agent),
        ((tasks, models, agents), design.task_system),
    )
    found: Array = means + sum(sd * random.normal(size=size) for size, sd in parts)
    return found if design.kind == "normal" else 1 / (1 + np.exp(-found))


def observe(design: Design, expected: Array, runs: int, random: np.random.Generator) -> Array:
    """The scores of several runs."""
    size = (*expected.shape, runs)
    if design.kind == "normal":
        noisy: Array = expected[..., None] + design.run * random.normal(size=size)
        return noisy
    passed: Array = (random.random(size) < expected[..., None]).astype(np.float64)
    return passed


def true_components(design: Design, random: np.random.Generator) -> dict[str, float]:
    """The parts by their definition, over 50,000 tasks: an implementation of its own."""
    expected = draw(design, 50_000, random)
    noise = design.run**2 if design.kind == "normal" else (expected * (1 - expected)).mean()
    found = {}
    for size in (1, 2, 3):
        for source in combinations(range(3), size):
            effect = expected
            for axis in range(3):
                mean = effect.mean(axis=axis, keepdims=True)
                effect = effect - mean if axis in source else mean
            found[" x ".join(FACTORS[axis] for axis in source)] = float((effect**2).mean())
    return {**found, "run": float(noise)}
