"""Two runs task by task: what was seen of a metric in each, and what is missing."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from gta_bench.records.attempts import UnitKey
from gta_bench.statistics.missing import Side
from gta_bench.statistics.pooled import Ratio


class Part(NamedTuple):
    """What one unit adds to a metric: `value` of `seen`; `missing` could not be measured."""

    value: float
    seen: float
    missing: float = 0.0


Parts = Mapping[UnitKey, Part]


class RunSums(NamedTuple):
    """One run of a metric: sums over all epochs that were planned, and means of those scored."""

    side: Side
    means: Ratio


class Paired(NamedTuple):
    """A metric of two runs: all tasks, and the places of those that both have a score for."""

    tasks: tuple[str, ...]
    first: RunSums
    second: RunSums
    common: tuple[int, ...]

    def ratios(self) -> tuple[Ratio, Ratio]:
        """The common tasks; one that was run more often does not count more."""
        places = list(self.common)
        one, two = (
            Ratio(*(np.asarray(column)[places] for column in run.means))
            for run in (self.first, self.second)
        )
        return one, two

    @property
    def lacking(self) -> bool:
        """Whether anything is missing."""
        return any(bool(run.side.missing.any()) for run in (self.first, self.second))


def pair_tasks(
    first: Parts, second: Parts, tasks: Sequence[str], *, epochs: tuple[int, int]
) -> Paired:
    """The two on these tasks, each as the mean of its epochs."""
    sizes = _sizes((first, second))
    runs = [
        _run(parts, tasks, number, sizes)
        for parts, number in zip((first, second), epochs, strict=True)
    ]
    measured = [(run.side.seen > 0) | (run.side.missing == 0) for run in runs]
    some = (runs[0].side.seen > 0) | (runs[1].side.seen > 0)
    common = np.flatnonzero(measured[0] & measured[1] & some)
    return Paired(tuple(tasks), runs[0], runs[1], tuple(map(int, common)))


def side_of(parts: Parts, tasks: Sequence[str], *, epochs: int) -> Side:
    """One run on these tasks."""
    return _run(parts, tasks, epochs, _sizes((parts,))).side


def _sizes(sides: Iterable[Parts]) -> dict[str, float]:
    """How much there is to measure in one unit of each task that some run has."""
    found: dict[str, list[float]] = {}
    for parts in sides:
        for (task, _), part in parts.items():
            found.setdefault(task, []).append(part.seen + part.missing)
    return {task: fmean(own) for task, own in found.items()}


def _run(parts: Parts, tasks: Sequence[str], epochs: int, sizes: Mapping[str, float]) -> RunSums:
    """Of a task that no run has, the size is the mean of the others."""
    usual = fmean(sizes.values()) if sizes else 1.0
    own: dict[str, list[Part]] = {}
    for (task, _), part in parts.items():
        own.setdefault(task, []).append(part)
    sums, means = [], []
    for task in tasks:
        units = own.get(task, [])
        absent = max(0, epochs - len(units)) * sizes.get(task, usual)
        summed = [sum(column) for column in zip(*units, strict=True)] or [0.0] * 3
        planned = max(epochs, len(units))
        sums.append([one / planned for one in (summed[0], summed[1], summed[2] + absent)])
        scored = sum(unit.seen > 0 for unit in units) or 1
        means.append([summed[0] / scored, summed[1] / scored])
    table, mean = np.asarray(sums).reshape(-1, 3), np.asarray(means).reshape(-1, 2)
    return RunSums(Side(table[:, 0], table[:, 1], table[:, 2]), Ratio(mean[:, 0], mean[:, 1]))
