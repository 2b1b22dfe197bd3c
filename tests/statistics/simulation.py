"""Datasets of GTA's shape with known truth: what intervals and tests say of them is counted."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from gta_bench.records.statistics import Interval, Source
from gta_bench.statistics.bootstrap import Ratio
from gta_bench.statistics.prediction import JudgedPart

# Leaves per task of the 132 tasks of GTA-Workflow, as published: 1,156 in all.
LEAVES = np.repeat(
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19],
    [1, 1, 5, 18, 26, 19, 19, 17, 4, 9, 6, 1, 4, 1, 1],
)
# Numbers of tasks and true shares that the checks go through.
DESIGNS = [(tasks, share) for tasks in (30, 132) for share in (0.1, 0.25, 0.5)]
# How much the leaves of a task have in common in the 20 publicly judged tasks.
ICC = 0.4


def leaves_within_tasks(
    random: np.random.Generator, *, tasks: int, share: float, icc: float = ICC
) -> Ratio:
    """Passed leaves and leaves of each task; every task has its own difficulty."""
    sizes = random.choice(LEAVES, tasks)
    scale = (1 - icc) / icc
    chances = random.beta(share * scale, (1 - share) * scale, tasks)
    return Ratio(random.binomial(sizes, chances).astype(np.float64), sizes.astype(np.float64))


def judged_and_labelled(
    random: np.random.Generator, *, tasks: int, labelled: int, share: float, leaves: bool
) -> list[JudgedPart]:
    """People pass a share; a lenient judge misses a tenth of that and passes 15 % of the rest."""
    if leaves:
        truth = leaves_within_tasks(random, tasks=tasks, share=share)
        good, sizes = np.asarray(truth.numerators), np.asarray(truth.denominators)
    else:
        good, sizes = (random.random(tasks) < share).astype(np.float64), np.ones(tasks)
    seen = random.binomial(good.astype(int), 0.9) + random.binomial(
        (sizes - good).astype(int), 0.15
    )
    return [
        JudgedPart(
            str(place), float(seen[place]), float(good[place]) if place < labelled else None, size
        )
        for place, size in enumerate(sizes)
    ]


def two_systems(
    random: np.random.Generator, *, tasks: int, shares: tuple[float, float], correlation: float
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Passed tasks of two systems whose outcomes correlate as asked."""
    first, second = shares
    both = first * second + correlation * np.sqrt(first * (1 - first) * second * (1 - second))
    drawn = random.random(tasks)
    one = drawn < first
    two = (drawn < both) | ((drawn >= first) & (drawn < first + second - both))
    return one, two


def coverage(
    interval: Callable[[np.random.Generator, int], Interval], truth: float, *, datasets: int
) -> float:
    """In which share of datasets the interval holds the truth."""
    random = np.random.default_rng(20261115)
    held = 0
    for seed in range(datasets):
        found = interval(random, seed)
        held += found.low <= truth <= found.high
    return held / datasets


def rejections(
    p_value: Callable[[np.random.Generator, int], float], *, datasets: int, level: float = 0.05
) -> float:
    """In which share of datasets a test says that there is a difference."""
    random = np.random.default_rng(20261115)
    return float(np.mean([p_value(random, seed) < level for seed in range(datasets)]))


COMPONENTS: Mapping[Source, float] = {
    "harness": 0.6,
    "model": 0.8,
    "harness x model": 0.2,
    "task": 2.0,
    "harness x task": 0.3,
    "model x task": 0.4,
    "harness x model x task": 0.5,
    "run": 0.7,
}


def crossed(
    random: np.random.Generator, *, harnesses: int, models: int, tasks: int, runs: int
) -> npt.NDArray[np.float64]:
    """Scores with the variance components above."""
    whole = {"harness": harnesses, "model": models, "task": tasks}
    scores = random.normal(0, np.sqrt(COMPONENTS["run"]), (harnesses, models, tasks, runs))
    for name, variance in COMPONENTS.items():
        if name != "run":
            shape = [size if factor in name.split(" x ") else 1 for factor, size in whole.items()]
            scores += random.normal(0, np.sqrt(variance), (*shape, 1))
    return scores
