"""Pairs of runs with a known true drop: how often the gate decides what."""

from collections.abc import Callable
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.records.gate import GateDecision
from gta_bench.statistics.gate import bet_against, decide_fixed

ALPHA = 0.05
_Array = npt.NDArray[np.float64]


class Chances(NamedTuple):
    """The chance that BASE and NEW pass each task, in a row for each pair of runs."""

    base: _Array
    new: _Array


def alike(shape: tuple[int, int], drop: float, random: np.random.Generator) -> Chances:
    """Easy and hard tasks, 60 % pass; a drop takes the same part of each chance.

    Without a drop, 24 % of the tasks differ between two runs.
    """
    base = random.beta(0.6, 0.4, shape)
    return Chances(base, base * np.maximum(0.0, 1 - drop / base.mean(axis=1, keepdims=True)))


def rare(shape: tuple[int, int], drop: float, random: np.random.Generator) -> Chances:
    """Hardly any task passes in NEW."""
    return Chances(np.full(shape, 0.05 + drop), np.full(shape, 0.05))


def uneven(shape: tuple[int, int], drop: float, random: np.random.Generator) -> Chances:
    """A fifth of the tasks lose nearly always, and the others together gain as much as that."""
    losers = np.broadcast_to(np.arange(shape[1]) < shape[1] // 5, shape)
    share, lost = losers.mean(), 0.9
    gained = (lost * share - drop) / (1 - share)
    return Chances(np.where(losers, 1.0, 0.5), np.where(losers, 1 - lost, 0.5 + gained))


def opposed(shape: tuple[int, int], drop: float, random: np.random.Generator) -> Chances:
    """Half of the tasks flip from pass to fail, and half the other way, without any luck."""
    number = shape[1] // 2 if not drop else ceil(shape[1] * (1 + drop) / 2 - 1e-9)
    losers = np.broadcast_to(np.arange(shape[1]) < number, shape).astype(np.float64)
    return Chances(losers, 1.0 - losers)


KINDS: dict[str, Callable[[tuple[int, int], float, np.random.Generator], Chances]] = {
    "alike": alike,
    "rare": rare,
    "uneven": uneven,
    "opposed": opposed,
}


def simulate_drops(
    kind: str, *, tasks: int, drop: float, repeats: tuple[int, int], datasets: int
) -> _Array:
    """Return the drops of the tasks in random order, in a row for each pair of runs."""
    random = np.random.default_rng([29, tasks, repeats[0], round(1000 * drop), len(kind)])
    chances = KINDS[kind]((datasets, tasks), drop, random)
    base, new = (
        random.binomial(number, side) / number
        for number, side in zip(repeats, chances, strict=True)
    )
    found: _Array = random.permuted(base - new, axis=1)
    return found


@lru_cache(maxsize=200_000)
def _decide(drops: tuple[float, ...], margin: float) -> GateDecision:
    return decide_fixed(drops, margin=margin).decision


def decide_once(drops: _Array, margin: float) -> list[GateDecision]:
    """Decide each row; the order does not matter, so that equal counts need one test."""
    return [_decide(tuple(row), margin) for row in np.sort(drops.round(9), axis=1).tolist()]


def decide_often(drops: _Array, margin: float) -> tuple[list[GateDecision], _Array]:
    """Decide each row task by task, and return how many tasks that took."""
    worse, margins = bet_against(drops, 0.0), bet_against(-drops, -margin)
    stopped = np.maximum(worse, margins) >= 1 / ALPHA
    ended = np.asarray(stopped.any(axis=1))
    last = np.where(ended, stopped.argmax(axis=1), drops.shape[1] - 1)
    passed = margins[np.arange(len(drops)), last] >= 1 / ALPHA
    words: list[GateDecision] = [
        "undecided" if not end else "not worse" if good else "worse"
        for end, good in zip(ended.tolist(), np.asarray(passed).tolist(), strict=True)
    ]
    return words, last + 1.0
