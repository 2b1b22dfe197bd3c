"""Datasets of GTA's shape with known truth: what intervals and tests say of them is counted."""

from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import Ratio
from gta_bench.statistics.prediction import JudgedPart

# Leaves per task of the 132 tasks of GTA-Workflow, as published: 1,156 in all.
LEAVES = np.repeat(
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19],
    [1, 1, 5, 18, 26, 19, 19, 17, 4, 9, 6, 1, 4, 1, 1],
)
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


def judged_and_labeled(
    random: np.random.Generator,
    *,
    tasks: int,
    labeled: int,
    share: float,
    leaves: bool,
    errors: tuple[float, float] = (0.1, 0.15),
) -> list[JudgedPart]:
    """People pass a share, leaf by leaf or task by task; the judge errs on its own.

    `errors` are the shares of good things that it fails and of bad things that it passes. What it
    gets wrong with few errors, it gets wrong with more, too.
    """
    sizes, place = _sizes_and_places(random, tasks, leaves)
    return _judged(random, sizes, place, labeled, share, errors)


def two_judged_and_labeled(
    random: np.random.Generator,
    *,
    tasks: int,
    labeled: int,
    shares: tuple[float, float],
    leaves: bool,
    errors: tuple[tuple[float, float], tuple[float, float]],
) -> tuple[list[JudgedPart], list[JudgedPart]]:
    """Two systems on the same tasks, which are as hard for one as for the other; same labels."""
    sizes, place = _sizes_and_places(random, tasks, leaves)
    first, second = (
        _judged(random, sizes, place, labeled, share, wrong)
        for share, wrong in zip(shares, errors, strict=True)
    )
    return first, second


def partly_sure(
    random: np.random.Generator,
    *,
    delivered: float,
    labeled: int,
    share: float,
    errors: tuple[float, float],
) -> list[JudgedPart]:
    """Of 132 tasks a part delivers something, and so much of that is good; the rest fails by rule.

    `errors` are those of the judge: good works failed, bad ones passed.
    """
    there = random.random(132) < delivered
    good = there & (random.random(132) < share)
    wrong = there & (random.random(132) < np.where(good, *errors))
    asked = set(random.permutation(np.flatnonzero(there))[:labeled].tolist())
    return [
        JudgedPart(
            str(n),
            float(good[n] ^ wrong[n]),
            float(good[n]) if n in asked or not there[n] else None,
            sure=not there[n],
        )
        for n in range(132)
    ]


def _sizes_and_places(
    random: np.random.Generator, tasks: int, leaves: bool
) -> tuple[npt.NDArray[np.int_], npt.NDArray[np.float64]]:
    sizes = random.choice(LEAVES, tasks) if leaves else np.ones(tasks, dtype=int)
    return sizes, random.random(tasks)


def _judged(
    random: np.random.Generator,
    sizes: npt.NDArray[np.int_],
    place: npt.NDArray[np.float64],
    labeled: int,
    share: float,
    errors: tuple[float, float],
) -> list[JudgedPart]:
    tasks = np.repeat(np.arange(len(sizes)), sizes)
    good = random.random(len(tasks)) < _chances(share, ICC, place)[tasks]
    wrong = random.random(len(tasks)) < np.where(good, *errors)
    return [
        JudgedPart(str(task), float(seen), float(passed) if task < labeled else None)
        for task, seen, passed in zip(
            tasks.tolist(), (good ^ wrong).tolist(), good.tolist(), strict=True
        )
    ]


class Cell(NamedTuple):
    """A kind of score, a number of tasks, two true shares, and how tasks hang together.

    `passed`: one outcome a task. `leaves`: as many as published. `calls`: heavy-tailed numbers,
    worth half as many tasks of equal weight, as tool calls of the stored predictions are.
    """

    kind: Literal["passed", "leaves", "calls"]
    tasks: int
    shares: tuple[float, float]
    correlation: float


def two_runs(random: np.random.Generator, cell: Cell) -> tuple[Ratio, Ratio]:
    """Two systems on the same tasks; what is hard for one is as hard for the other."""
    n = cell.tasks
    if cell.kind == "passed":
        sizes = np.ones(n, dtype=int)
    elif cell.kind == "leaves":
        sizes = random.choice(LEAVES, n)
    else:
        sizes = np.ceil(random.lognormal(1.6, 0.83, n)).astype(int)
    place = random.random(n)
    first, second = (
        Ratio(
            random.binomial(sizes, _chances(share, cell.correlation, place)).astype(np.float64),
            sizes.astype(np.float64),
        )
        for share in cell.shares
    )
    return first, second


def _chances(
    share: float, correlation: float, place: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The chance of each task, of a beta distribution, from the task's place among all."""
    if correlation == 0:
        return np.full(len(place), share)
    steps, values = _beta(share, correlation)
    return np.interp(place, steps, values)


@cache
def _beta(
    share: float, correlation: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    steps, scale = np.linspace(0, 1, 20_001), 1 / correlation - 1
    return steps, stats.beta.ppf(steps, share * scale, (1 - share) * scale)


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
