"""Pairs of runs with a known true drop: how often the gate decides what."""

from collections.abc import Callable
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.records.gate import GateDecision
from gta_bench.statistics.gate import (
    bet_against,
    decide_bounded,
    decide_fixed,
    decide_sequential,
    find_next_look,
)

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


class RunningRates(NamedTuple):
    """How a decision was made in simulated commands that run NEW.

    `decided` looks at the beginning of the random order, `naive` at tasks as they finish.
    """

    decided: list[GateDecision]
    naive: list[GateDecision]
    used: list[int]
    started: list[int]
    killed: int


def simulate_running(
    kind: str, *, tasks: int, drop: float, datasets: int, margin: float, slow: float
) -> RunningRates:
    """Run NEW with two workers, a kill and a resumed command, looking as the gate does.

    A task that fails takes `slow` times as long as one that passes. The kill comes at any time; the
    tasks that run then are lost and run again, with another outcome.
    """
    random = np.random.default_rng([30, tasks, round(1000 * drop), len(kind), round(100 * slow)])
    chances = KINDS[kind]((datasets, tasks), drop, random)
    order = random.permuted(np.tile(np.arange(tasks), (datasets, 1)), axis=1)
    sides = [np.take_along_axis(side, order, axis=1) for side in chances]
    base = random.binomial(1, sides[0])
    tries = random.binomial(1, np.stack([sides[1]] * 3, axis=2))
    seconds = random.exponential(np.where(tries == 1, 1.0, slow))
    kills = random.uniform(0, seconds[:, :, 0].sum(axis=1) / 2)
    rows = [
        _RunningRow(*one, margin=margin)
        for one in zip(base.tolist(), tries.tolist(), seconds.tolist(), kills.tolist(), strict=True)
    ]
    decided = [row.run() for row in rows]
    finished = [[row.drops[task] for task in row.finished] for row in rows]
    return RunningRates(
        decided=decided,
        # Where BASE passes nothing, NEW cannot be worse, and no task is run.
        naive=[
            decide_sequential(drops, margin=margin).decision if drops else word
            for word, drops in zip(decided, finished, strict=True)
        ],
        used=[row.used for row in rows],
        started=[sum(row.attempts) for row in rows],
        killed=sum(max(row.attempts) > 1 for row in rows),
    )


class _RunningRow:
    """One NEW: the tasks are numbered in the random order of the gate."""

    def __init__(
        self,
        base: list[int],
        tries: list[list[int]],
        seconds: list[list[float]],
        kill: float,
        *,
        margin: float,
    ) -> None:
        self.base, self.tries, self.seconds, self.margin = base, tries, seconds, margin
        self.kill: float | None = kill
        self.drops: dict[int, int] = {}
        self.finished: list[int] = []
        self.attempts = [0] * len(base)
        self.now = 0.0
        self.used = 0

    def run(self) -> GateDecision:
        """Return the decision, which must be that of the whole order."""
        while True:
            every = range(len(self.base))
            scored = next((task for task in every if task not in self.drops), len(every))
            ends = [
                (self.drops[task], self.drops[task]) if task < scored else (one - 1, one)
                for task, one in enumerate(self.base)
            ]
            test = decide_bounded(ends, margin=self.margin)
            upto = find_next_look(test, scored=scored, at_once=2)
            if upto is None:
                break
            self._play([task for task in every[:upto] if task not in self.drops])
        assert test.decision is not None
        seen = [self.drops[task] for task in every[:scored]]
        rest = [self.base[task] - self.tries[task][0] for task in every[scored:]]
        assert decide_sequential(seen + rest, margin=self.margin).decision == test.decision
        self.used = min(test.used, scored)
        return test.decision

    def _play(self, waiting: list[int]) -> None:
        """Two workers take tasks in order; a kill ends both, and the next command looks again."""
        free = [self.now, self.now]
        ends: list[tuple[float, int]] = []
        for task in waiting:
            begins = min(free)
            if self.kill is not None and begins >= self.kill:
                break
            attempt = self.attempts[task]
            self.attempts[task] += 1
            end = begins + self.seconds[task][attempt]
            free[free.index(begins)] = end
            ends.append((end, task))
        for end, task in sorted(ends):
            if self.kill is None or end <= self.kill:
                self.drops[task] = self.base[task] - self.tries[task][self.attempts[task] - 1]
                self.finished.append(task)
        last = max([self.now, *(end for end, _ in ends)])
        if self.kill is not None and last > self.kill:
            last, self.kill = self.kill, None
        self.now = last


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
