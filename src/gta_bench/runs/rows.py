"""The units and verdicts of a run, and their rows in results tables and data frames."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from gta_bench.errors import format_count
from gta_bench.metrics.workflow_scores import find_deliverable_kinds, tool_categories
from gta_bench.records.attempts import UnitKey
from gta_bench.records.failures import Failure
from gta_bench.records.scores import UnitScore
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.views import FrameRow, Tabular
from gta_bench.records.workflow_scores import TaskScore

_Kind = TypeVar("_Kind", bound=AtomicUnit | WorkflowUnit, covariant=True)


class RunUnits(Tabular, tuple[_Kind, ...], Generic[_Kind]):
    """What a system did in the tasks of a run: a tuple of units."""

    run: str

    def __new__(cls, units: Iterable[_Kind] = (), run: str = "") -> Self:
        made = super().__new__(cls, units)
        made.run = run
        return made

    def describe(self) -> str:
        """How many there are, and how many have no result."""
        failed = sum(unit.failure is not None for unit in self)
        missing = f", {failed} without a result" if failed else ""
        return f"of {self.run}: {format_count(len(self), 'unit')}{missing}"

    def rows(self) -> list[FrameRow]:
        """A row for each unit."""
        return [sample_row(unit, self.run) for unit in self]


class Verdicts(Tabular, dict[VerdictKey, VerdictRow]):
    """The newest verdict of every judge on every leaf of a run, by key."""

    def __init__(self, verdicts: Mapping[VerdictKey, VerdictRow], run: str = "") -> None:
        super().__init__(verdicts)
        self.run = run

    def describe(self) -> str:
        """How many there are, how many have no score, and the judges."""
        missing = sum(not isinstance(row.verdict, Scored) for row in self.values())
        judges = ", ".join(sorted({key.judge for key in self})) or "nobody"
        scored = f", {missing} without a score" if missing else ""
        return f"of {self.run}: {format_count(len(self), 'verdict')}{scored}, by {judges}"

    def rows(self) -> list[FrameRow]:
        """A row for each leaf, judge and repeat."""
        return [{"run": self.run, **row.row()} for row in self.values()]


def scored_row(
    unit: AtomicUnit, run: str, score: UnitScore | None, failed: Iterable[Failure]
) -> FrameRow:
    """The row of an Atomic unit in the table `samples`, with its scores if it has any."""
    causes = {"first_causes": [one.cause for one in failed]}
    return sample_row(unit, run) | causes | ({} if score is None else score.counts())


def judged_row(unit: WorkflowUnit, run: str, judge: str, task: TaskScore) -> FrameRow:
    """The row of a Workflow unit with its score by a judge."""
    values = [leaf.value for leaf in task.leaves if leaf.value is not None]
    found = {"judge": judge, "root": task.root, "compat_root": task.compat, "scored": len(values)}
    return sample_row(unit, run) | found


def sample_row(unit: AtomicUnit | WorkflowUnit, run: str) -> FrameRow:
    """The row of a unit in the table `samples`, without its scores."""
    took = {"seconds", "model_calls", "input_tokens", "output_tokens", "cost_usd"}
    row: dict[str, Any] = {
        "run": run,
        "task": unit.task.id,
        "epoch": unit.epoch,
        "failure": unit.failure,
        **unit.usage.model_dump(include=took),
        **{
            f"calls_{status}": sum(call.status == status for call in unit.calls)
            for status in ("done", "error", "unavailable")
        },
    }
    if isinstance(unit, AtomicUnit):
        return row
    return row | {
        "category": unit.task.category,
        "leaves": sum(1 for _ in unit.task.leaves()),
        "kinds": list(find_deliverable_kinds(unit)),
        "tool_categories": list(tool_categories(unit)),
    }


_Row = TypeVar("_Row", UnitScore, TaskScore, Failure)


class RowFollower(Generic[_Row]):
    """Takes the rows of one unit after the other from rows in the order of a run's units."""

    def __init__(self, rows: Iterable[_Row], tasks: Sequence[str]) -> None:
        self._places = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
        self._rows: Iterator[_Row] = iter(rows)
        self._next: _Row | None = next(self._rows, None)

    def take(self, key: UnitKey) -> list[_Row]:
        """Return the rows of a unit, which may be none; those of earlier units are left out."""
        found: list[_Row] = []
        wanted = (self._places[key[0]], key[1])
        while self._next is not None:
            place = (self._places.get(self._next.task, -1), self._next.epoch)
            if place > wanted:
                break
            if place == wanted:
                found.append(self._next)
            self._next = next(self._rows, None)
        return found
