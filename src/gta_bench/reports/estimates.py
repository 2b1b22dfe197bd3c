"""Scores of a run with their intervals: whatever belongs to one task is drawn together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gta_bench.metrics import table
from gta_bench.metrics.run_scores import tool_uses
from gta_bench.metrics.strict.workflow import count_judged
from gta_bench.records.scores import UnitScore
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import TaskScore, WorkflowScores
from gta_bench.statistics.pooled import Ratio, interval_of


class Part(NamedTuple):
    """What one unit of a task adds to a pooled score: `value` of `whole`."""

    task: str
    value: float
    whole: float


class Estimate(NamedTuple):
    """A score on its own scale (percent, or 0 to 10 for the root score), with its interval."""

    metric: str
    value: float
    low: float
    high: float
    n: int

    @property
    def text(self) -> str:
        """The score with two decimals."""
        return f"{self.value:.2f}"

    @property
    def span(self) -> str:
        """The interval with two decimals."""
        return f"{self.low:.2f} to {self.high:.2f}"


def estimates(parts: Mapping[str, Iterable[Part]]) -> dict[str, Estimate]:
    """An estimate for every metric that something could be measured for."""
    found = {metric: _estimate(metric, list(own)) for metric, own in parts.items()}
    return {metric: one for metric, one in found.items() if one is not None}


def atomic_parts(units: Sequence[UnitScore], names: Sequence[str]) -> dict[str, list[Part]]:
    """The parts of the named metrics of an Atomic run, strict."""
    rows = [table.metric(name) for name in names]
    return {row.name: [Part(unit.task, *row.part(unit.strict)) for unit in units] for row in rows}


def workflow_parts(
    tasks: Sequence[TaskScore], scores: WorkflowScores, units: Sequence[WorkflowUnit] = ()
) -> dict[str, list[Part]]:
    """The parts of every metric of one judge's tasks; Tool SR is that of the units."""
    counted = [
        (
            task.task,
            count_judged(
                [task],
                leaf_threshold=scores.leaf_threshold,
                root_threshold=scores.root_threshold,
            ),
        )
        for task in tasks
    ]
    return {
        **{
            name: [Part(task, *row.part(counts)) for task, counts in counted]
            for name, row in table.JUDGED.items()
        },
        table.TOOL_SR.name: [
            Part(unit.task.id, *table.TOOL_SR.part(tool_uses(unit.calls))) for unit in units
        ],
    }


def _estimate(metric: str, parts: Sequence[Part]) -> Estimate | None:
    row = table.metric(metric)
    top = row.top
    sums: dict[str, tuple[float, float]] = {}
    for task, value, whole in parts:
        if whole:
            before = sums.get(task, (0.0, 0.0))
            sums[task] = (before[0] + value, before[1] + whole)
    if not sums:
        return None
    # Sums of similarities may come out a hair above what they can be.
    values = [min(value, top * whole) for value, whole in sums.values()]
    wholes = [whole for _, whole in sums.values()]
    found = interval_of(Ratio(values, wholes), top=top)
    low, middle, high = (row.factor * one for one in (found.low, found.estimate, found.high))
    return Estimate(metric, middle, low, high, found.n)
