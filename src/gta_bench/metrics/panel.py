"""Combine the verdicts of several judges into one verdict for each leaf."""

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median_low
from typing import Literal

from gta_bench.records.attempts import UnitKey
from gta_bench.records.checks import CHECK
from gta_bench.records.cost import CostSum, read_cost
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow

Pooling = Literal["mean", "majority"]
LeafKey = tuple[str, int, str]


class Panel:
    """Combines the verdicts of all judges of a run, which must have been seen before.

    `mean` is the mean of the judges' means. `majority` is the lower median of all scores, which
    passes if and only if more than half of all scores do.
    """

    def __init__(self, pooling: Pooling) -> None:
        self._pooling = pooling
        self._repeats: dict[str, int] = {}

    def see(self, rows: Iterable[VerdictRow]) -> None:
        """Count the judges and their repeats in all rows of one or more leaves."""
        for own in group_by_leaf(rows)[1].values():
            for judge, given in own.items():
                self._repeats[judge] = max(self._repeats.get(judge, 0), len(given))

    @property
    def name(self) -> str | None:
        """The name of the panel among the judges; None if there are fewer than two judges."""
        if len(self._repeats) < 2:
            return None
        return f"panel, {self._pooling} of {' and '.join(sorted(self._repeats))}"

    def combine(self, rows: Iterable[VerdictRow]) -> Iterator[VerdictRow]:
        """Yield a row for every leaf that all judges scored in all repeats."""
        name = self.name
        if name is None:
            return
        for (task, epoch, leaf), own in group_by_leaf(rows)[1].items():
            scores = [list_scores(own.get(judge, ())) for judge in sorted(self._repeats)]
            counts = [self._repeats[judge] for judge in sorted(self._repeats)]
            if any(len(given) < count for given, count in zip(scores, counts, strict=True)):
                continue
            if self._pooling == "mean":
                value = fmean(map(fmean, scores))
            else:
                value = median_low(score for given in scores for score in given)
            key = VerdictKey(task=task, epoch=epoch, leaf=leaf, judge=name)
            yield VerdictRow(key=key, verdict=Scored(value=value))


def combine_judges(rows: Iterable[VerdictRow], pooling: Pooling) -> tuple[VerdictRow, ...]:
    """Return a row for every leaf that all judges scored in all repeats; none for one judge."""
    given = list(rows)
    panel = Panel(pooling)
    panel.see(given)
    return tuple(panel.combine(given))


def group_by_leaf(
    rows: Iterable[VerdictRow],
) -> tuple[list[str], dict[LeafKey, dict[str, list[VerdictRow]]]]:
    """Return the judges, and the rows of each leaf by judge, sorted by repeat."""
    leaves: dict[LeafKey, dict[str, list[VerdictRow]]] = {}
    for row in sorted(rows, key=lambda row: row.key.repeat):
        key = row.key
        own = leaves.setdefault((key.task, key.epoch, key.leaf), {})
        own.setdefault(key.judge, []).append(row)
    return sorted({judge for own in leaves.values() for judge in own}), leaves


class LeafTable:
    """The scores of all leaves by all judges, packed, in the order of the given rows."""

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.columns: dict[str, LeafColumn] = {}
        self._epochs = array("q")
        self._leaves: list[str] = []

    def add(self, rows: Iterable[VerdictRow]) -> None:
        """Add all rows of one or more units."""
        for (task, epoch, leaf), own in group_by_leaf(rows)[1].items():
            self.tasks.append(sys.intern(task))
            self._epochs.append(epoch)
            self._leaves.append(sys.intern(leaf))
            for judge in own:
                if judge not in self.columns:
                    self.columns[judge] = LeafColumn(len(self.tasks) - 1)
            for judge, column in self.columns.items():
                column.add(own.get(judge, ()))

    @property
    def judges(self) -> list[str]:
        """The names of all judges, sorted."""
        return sorted(self.columns)

    def places(self) -> Iterator[LeafKey]:
        """Yield the task, epoch and id of each leaf."""
        return zip(self.tasks, self._epochs, self._leaves, strict=True)

    def __len__(self) -> int:
        return len(self.tasks)


class LeafColumn:
    """One judge's scores of all leaves; `given` is how many rows each leaf has.

    `counts` is how many scores each has, which may be fewer, and `values` are those scores, leaf
    by leaf. Iterating yields the scores of each leaf by repeat.
    """

    def __init__(self, empty: int) -> None:
        self.given = array("q", [0]) * empty
        self.cost = CostSum()
        self.counts = array("q", [0]) * empty
        self.values = array("d")

    def add(self, rows: Sequence[VerdictRow]) -> None:
        """Add the rows of the next leaf, which may be none."""
        scores = list_scores(rows)
        self.counts.append(len(scores))
        self.values.extend(scores)
        self.given.append(len(rows))
        for row in rows:
            self.cost.add(read_cost(row))

    def __iter__(self) -> Iterator[list[float]]:
        place = 0
        for count in self.counts:
            yield self.values[place : place + count].tolist()
            place += count


def pack_leaves(rows: Iterable[Iterable[VerdictRow]], units: Iterable[WorkflowUnit]) -> LeafTable:
    """Pack the rows of each unit, without those of checks that only decide if a judge is asked.

    Such a check and the judge answer different questions, so they cannot disagree. The units are
    read only if there are verdicts of checks.
    """
    table = LeafTable()
    gates: dict[UnitKey, frozenset[str]] | None = None
    for own in rows:
        given = list(own)
        if any(row.key.judge == CHECK for row in given):
            gates = _find_gates(units) if gates is None else gates
            given = [
                row
                for row in given
                if row.key.judge != CHECK
                or row.key.leaf not in gates.get((row.key.task, row.key.epoch), ())
            ]
        table.add(given)
    return table


def _find_gates(units: Iterable[WorkflowUnit]) -> dict[UnitKey, frozenset[str]]:
    known: dict[frozenset[str], frozenset[str]] = {}
    found = {}
    for unit in units:
        gates = frozenset(leaf.id for leaf in unit.task.leaves() if leaf.by == "check-then-judge")
        if gates:
            found[unit.task.id, unit.epoch] = known.setdefault(gates, gates)
    return found


def list_scores(rows: Sequence[VerdictRow]) -> list[float]:
    """Return the scores of the rows that have one."""
    return [row.verdict.value for row in rows if isinstance(row.verdict, Scored)]
