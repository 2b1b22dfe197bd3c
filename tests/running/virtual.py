"""Leases in virtual time: the real table, workers that only have a clock."""

import heapq
import math
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from gta_bench.running.leases import START, UNITS_PER_LEASE, LeaseTable


class Lease(NamedTuple):
    name: str
    tasks: tuple[str, ...]


class Work(NamedTuple):
    """How long each unit takes, and how long it was expected to take."""

    seconds: Mapping[str, float]
    expected: Mapping[str, float]

    def ideal(self, workers: int) -> float:
        return max(sum(self.seconds.values()) / workers, max(self.seconds.values()))


class Worked(NamedTuple):
    makespan: float
    leases: int


def log_normal(units: int, sigma: float, *, known: float, seed: int, median: float = 20.0) -> Work:
    """Log-normal units; `known` is the part of the variance that the expectation explains."""
    random = Random(seed)
    seconds, expected = {}, {}
    for number in range(units):
        foreseen = math.exp(random.gauss(0, sigma * math.sqrt(known)))
        chance = math.exp(random.gauss(0, sigma * math.sqrt(1 - known)))
        seconds[str(number)] = median * foreseen * chance
        expected[str(number)] = foreseen
    return Work(seconds, expected)


def work_off(work: Work, workers: int, *, lose: int = 0) -> Worked:
    """Let workers take leases; the first `lose` of them are lost when they would be done."""
    now = 0.0
    table = LeaseTable(work.expected, make=Lease, places=workers, clock=lambda: now)
    running: list[tuple[float, int, Lease]] = []
    done: list[str] = []
    leases = 0
    while True:
        while len(running) < workers and (lease := table.take()) is not None:
            leases += 1
            end = now + START + sum(work.seconds[task] for task in lease.tasks)
            heapq.heappush(running, (end, leases, lease))
        if not running:
            break
        now, number, lease = heapq.heappop(running)
        if number <= lose:
            table.give_back(lease)
        else:
            assert table.finish(lease)
            done += lease.tasks
    assert sorted(done) == sorted(work.seconds)
    return Worked(now, leases)


def static_makespan(work: Work, workers: int) -> float:
    """What was done before: two shards a worker, dealt in turn before the work starts."""
    names = list(work.seconds)
    count = max(2 * workers, -(-len(names) // UNITS_PER_LEASE))
    free = [0.0] * workers
    for start in range(count):
        took = START + sum(work.seconds[name] for name in names[start::count])
        heapq.heapreplace(free, free[0] + took)
    return max(free)
