"""Scores of a run with their intervals, alone and paired with another run.

Everything that belongs to one task counts as one observation.
"""

from array import array
from bisect import bisect_left
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gta_bench.metrics import table
from gta_bench.metrics.run_scores import count_tool_uses
from gta_bench.metrics.strict.workflow import count_judged
from gta_bench.records.attempts import UnitKey
from gta_bench.records.scores import CountBlock, CountBlocks, UnitScore
from gta_bench.records.statistics import Bounds
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import TaskScore, WorkflowScores
from gta_bench.statistics.missing import Side, find_bounds
from gta_bench.statistics.pooled import Ratio, compute_interval, effective_tasks


class Part(NamedTuple):
    """What one unit adds to a metric: `value` out of `seen`; `missing` could not be measured."""

    value: float
    seen: float
    missing: float = 0.0


Parts = Mapping[UnitKey, Part]
_Array = npt.NDArray[np.float64]


class TaskParts(NamedTuple):
    """The parts of a task's epochs, which are in ascending order."""

    epochs: "array[int]"
    value: "array[float]"
    seen: "array[float]"
    missing: "array[float]"

    @property
    def columns(self) -> tuple["array[float]", ...]:
        """What each part has."""
        return self[1:]

    def measured(self) -> tuple[_Array, _Array]:
        """Return value and `seen` of all parts with something to measure."""
        value, seen = np.asarray(self.value), np.asarray(self.seen)
        return value[seen != 0], seen[seen != 0]

    def find(self, epoch: int) -> tuple[int, bool]:
        """Return the place of an epoch, and whether it is there."""
        at = bisect_left(self.epochs, epoch)
        return at, at < len(self.epochs) and self.epochs[at] == epoch


class PartTable(Parts):
    """Parts of many units in arrays, which take a tenth of the memory; ordered by task, epoch."""

    def __init__(self, parts: Iterable[tuple[UnitKey, Part]] = ()) -> None:
        self.tasks: dict[str, TaskParts] = {}
        for key, part in parts:
            self.add(key, part)

    def add(self, key: UnitKey, part: Part) -> None:
        """Add or replace the part of a unit."""
        task, epoch = key
        own = self._of(task)
        at, there = own.find(epoch)
        if there:
            for column, value in zip(own.columns, part, strict=True):
                column[at] = value
            return
        own.epochs.insert(at, epoch)
        for column, value in zip(own.columns, part, strict=True):
            column.insert(at, value)

    def add_block(self, block: CountBlock, metric: table.Metric[Any]) -> None:
        """Add the parts of units that the table does not have yet."""
        values, wholes = (np.asarray(one, dtype=float) for one in metric.part(block.counts))
        epochs = np.asarray(block.epochs, dtype=np.int64)
        # A new task begins, or the order of epochs is broken.
        starts = (block.tasks[1:] != block.tasks[:-1]) | (epochs[1:] <= epochs[:-1])
        ends = [*(np.flatnonzero(starts) + 1), len(epochs)]
        for start, end in pairwise([0, *ends]):
            own = self._of(block.tasks[start])
            if own.epochs and epochs[start] <= own.epochs[-1]:
                for at in range(start, end):
                    key = (block.tasks[at], int(epochs[at]))
                    self.add(key, Part(float(values[at]), float(wholes[at])))
                continue
            own.epochs.frombytes(epochs[start:end].tobytes())
            own.value.frombytes(values[start:end].tobytes())
            own.seen.frombytes(wholes[start:end].tobytes())
            own.missing.frombytes(bytes(8 * (end - start)))

    def _of(self, task: str) -> TaskParts:
        """Return the parts of a task, which may be none yet."""
        if task not in self.tasks:
            self.tasks[task] = TaskParts(array("q"), array("d"), array("d"), array("d"))
        return self.tasks[task]

    def __getitem__(self, key: UnitKey) -> Part:
        own = self.tasks[key[0]]
        at, there = own.find(key[1])
        if not there:
            raise KeyError(key)
        return Part(*(column[at] for column in own.columns))

    def __iter__(self) -> Iterator[UnitKey]:
        return ((task, epoch) for task, own in self.tasks.items() for epoch in own.epochs)

    def __len__(self) -> int:
        return sum(len(own.epochs) for own in self.tasks.values())

    def items(self) -> ItemsView[UnitKey, Part]:
        """Return all keys with their parts, without a search for each."""
        return _PartItems(self)

    def pairs(self) -> Iterator[tuple[UnitKey, Part]]:
        """Yield all keys with their parts."""
        for task, own in self.tasks.items():
            for epoch, *values in zip(*own, strict=True):
                yield (task, epoch), Part(*values)


class _PartItems(ItemsView[UnitKey, Part]):
    def __init__(self, table: PartTable) -> None:
        super().__init__(table)
        self._table = table

    def __iter__(self) -> Iterator[tuple[UnitKey, Part]]:
        return self._table.pairs()


def split_tasks(parts: Parts) -> Mapping[str, TaskParts]:
    """Return the parts by task."""
    return (parts if isinstance(parts, PartTable) else PartTable(parts.items())).tasks


class Estimate(NamedTuple):
    """A score on its own scale (percent, or 0 to 10 for the root score), with its interval.

    `effective` is how many tasks of equal weight its `n` tasks are worth. `bounds` are the score if
    all that is missing failed or succeeded.
    """

    metric: str
    value: float
    low: float
    high: float
    n: int
    effective: float
    bounds: Bounds | None = None

    @property
    def text(self) -> str:
        """The score with two decimals."""
        return f"{self.value:.2f}"

    @property
    def span(self) -> str:
        """The interval with two decimals."""
        return f"{self.low:.2f} to {self.high:.2f}"

    @property
    def cases(self) -> str:
        """The worst and the best case, if something is missing."""
        return "" if self.bounds is None else f"{self.bounds.low:.2f} to {self.bounds.high:.2f}"


def estimates(
    parts: Mapping[str, Parts], tasks: Sequence[str], *, epochs: int
) -> dict[str, Estimate]:
    """Estimate every metric that at least one of these tasks has."""
    found = {
        metric: _estimate(metric, own, sum_side(own, tasks, epochs=epochs))
        for metric, own in parts.items()
    }
    return {metric: one for metric, one in found.items() if one is not None}


def make_atomic_parts(units: Iterable[UnitScore], names: Sequence[str]) -> dict[str, PartTable]:
    """Return the strict parts of the named metrics of an Atomic run."""
    rows = [table.metric(name) for name in names]
    found = {row.name: PartTable() for row in rows}
    if isinstance(units, CountBlocks):
        for block in units.read_counts(categories=any(row in table.F1S for row in rows)):
            for row in rows:
                found[row.name].add_block(block, row)
        return found
    for unit in units:
        add_atomic_parts(found, unit)
    return found


def add_atomic_parts(found: Mapping[str, PartTable], unit: UnitScore) -> None:
    """Add a unit to the parts of each metric."""
    for name, parts in found.items():
        parts.add((unit.task, unit.epoch), Part(*table.metric(name).part(unit.strict)))


def make_workflow_parts(
    tasks: Iterable[TaskScore], scores: WorkflowScores, units: Iterable[WorkflowUnit] = ()
) -> dict[str, Parts]:
    """Return the parts of every metric of one judge's tasks; Tool SR is computed from the units."""
    return {
        **make_judged_parts(tasks, scores),
        table.TOOL_SR.name: PartTable(
            ((unit.task.id, unit.epoch), Part(*table.TOOL_SR.part(count_tool_uses(unit.calls))))
            for unit in units
        ),
    }


def make_judged_parts(tasks: Iterable[TaskScore], scores: WorkflowScores) -> dict[str, PartTable]:
    """Return the parts of each judged metric, by the thresholds of these scores."""
    found = {name: PartTable() for name in table.JUDGED}
    for task in tasks:
        add_judged_parts(found, task, scores)
    return found


def add_judged_parts(
    found: Mapping[str, PartTable], task: TaskScore, scores: WorkflowScores
) -> None:
    """Add a unit; one without root is missing, and so are leaves without score."""
    counts = count_judged(
        [task], leaf_threshold=scores.leaf_threshold, root_threshold=scores.root_threshold
    )
    for name, parts in found.items():
        row = table.JUDGED[name]
        value, seen = row.part(counts)
        whole = len(task.leaves) if row is table.LEAF_SR else 1
        parts.add((task.task, task.epoch), Part(value, seen, whole - seen))


def _estimate(metric: str, parts: Parts, side: Side) -> Estimate | None:
    row = table.metric(metric)
    found = (own.measured() for own in split_tasks(parts).values())
    sums = [(float(value.sum()), float(seen.sum())) for value, seen in found if len(seen)]
    if not sums:
        return None
    # Sums of similarities may be slightly too high because of rounding.
    values = [min(value, row.top * whole) for value, whole in sums]
    wholes = [whole for _, whole in sums]
    own = compute_interval(Ratio(values, wholes), top=row.top)
    low, middle, high = (row.factor * one for one in (own.low, own.estimate, own.high))
    bounds = find_bounds(side, top=row.top).scaled(row.factor) if side.missing.any() else None
    return Estimate(metric, middle, low, high, own.n, effective_tasks(wholes), bounds)


class RunSums(NamedTuple):
    """A metric of one run: sums over all planned epochs, and means of the scored ones."""

    side: Side
    means: Ratio


class Paired(NamedTuple):
    """A metric of two runs: all tasks, and the indexes of those with a score in both."""

    tasks: tuple[str, ...]
    first: RunSums
    second: RunSums
    common: tuple[int, ...]

    def ratios(self) -> tuple[Ratio, Ratio]:
        """Return the common tasks; more epochs do not give a task more weight."""
        indexes = list(self.common)
        one, two = (
            Ratio(*(np.asarray(column)[indexes] for column in run.means))
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
    """Pair two runs on these tasks, each task as the mean of its epochs."""
    sizes = _sizes((first, second))
    runs = [
        _run(parts, tasks, number, sizes)
        for parts, number in zip((first, second), epochs, strict=True)
    ]
    measured = [(run.side.seen > 0) | (run.side.missing == 0) for run in runs]
    some = (runs[0].side.seen > 0) | (runs[1].side.seen > 0)
    common = np.flatnonzero(measured[0] & measured[1] & some)
    return Paired(tuple(tasks), runs[0], runs[1], tuple(map(int, common)))


def sum_side(parts: Parts, tasks: Sequence[str], *, epochs: int) -> Side:
    """Return the sums of one run on these tasks."""
    return _run(parts, tasks, epochs, _sizes((parts,))).side


def _sizes(sides: Iterable[Parts]) -> dict[str, float]:
    """Return how much there is to measure in a unit of each task that any run has."""
    found: dict[str, list[_Array]] = {}
    for parts in sides:
        for task, own in split_tasks(parts).items():
            found.setdefault(task, []).append(np.asarray(own.seen) + np.asarray(own.missing))
    return {task: float(np.concatenate(own).mean()) for task, own in found.items()}


def _run(parts: Parts, tasks: Sequence[str], epochs: int, sizes: Mapping[str, float]) -> RunSums:
    """Sum up one run; a task that no run has gets the mean size of the others."""
    usual = fmean(sizes.values()) if sizes else 1.0
    found, none = split_tasks(parts), TaskParts(array("q"), array("d"), array("d"), array("d"))
    sums, means = [], []
    for task in tasks:
        own = found.get(task, none)
        units = len(own.epochs)
        absent = max(0, epochs - units) * sizes.get(task, usual)
        summed = [float(np.asarray(column).sum()) for column in own.columns]
        planned = max(epochs, units)
        sums.append([one / planned for one in (summed[0], summed[1], summed[2] + absent)])
        scored = int(np.count_nonzero(np.asarray(own.seen) > 0)) or 1
        means.append([summed[0] / scored, summed[1] / scored])
    table, mean = np.asarray(sums).reshape(-1, 3), np.asarray(means).reshape(-1, 2)
    return RunSums(Side(table[:, 0], table[:, 1], table[:, 2]), Ratio(mean[:, 0], mean[:, 1]))
