"""Sources of a score's uncertainty: tasks, repeats, the judge's noise, and its bias."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import variance
from typing import NamedTuple

from gta_bench.judge_quality.calibration import leaf_parts
from gta_bench.metrics import table
from gta_bench.metrics.panel import LeafTable
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.reports.certainty import RunMetrics
from gta_bench.reports.estimates import Parts, split_tasks
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.tables import Table
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.statistics.prediction import bias_variance

HEADING = ("run", "judge", "metric", "tasks", "repeats", "judge noise", "judge bias")


class Budget(NamedTuple):
    """The variance of a metric by source; None if the run has no data on it.

    Unknown parts of repeats and of the judge's noise are included in tasks. The judge's bias is in
    no interval except the corrected one of `gta judge calibrate`.
    """

    run: str
    judge: str
    metric: str
    tasks: float
    repeats: float | None
    noise: float | None
    bias: float | None

    def share(self, part: float | None) -> str:
        """Return a source in percent of all known ones."""
        total = sum(one for one in (self.tasks, self.repeats, self.noise, self.bias) if one)
        if part is None:
            return "unknown"
        return f"{100 * part / total:.0f} %" if total else "-"


def budgets(
    summaries: Sequence[RunSummary | WorkflowSummary], runs: Iterable[RunMetrics]
) -> Iterator[Budget]:
    """Yield the budgets of the primary metric, or of Leaf SR for runs that a judge scored.

    `runs` are the metrics of the summaries.
    """
    judged = {one.name: one for one in summaries if isinstance(one, WorkflowSummary)}
    for run in runs:
        row = table.LEAF_SR if run.judge else table.primary(run.mode)
        noise = bias = None
        if run.judge:
            noise, bias = _judge_variances(judged[run.run], run.judge)
        if (found := _spread(run.parts[row.name])) is not None:
            between, within = found
            repeats = None if within is None else max(0.0, within - (noise or 0.0))
            tasks = max(0.0, between - max(within or 0.0, noise or 0.0))
            yield Budget(run.run, run.judge, row.label, tasks, repeats, noise, bias)


def budget_table(found: Iterable[Budget]) -> Table:
    """Return a row for each run and judge."""
    return Table(
        HEADING,
        tuple(
            (
                one.run,
                one.judge or "-",
                one.metric,
                *(one.share(part) for part in (one.tasks, one.repeats)),
                *(one.share(part) if one.judge else "-" for part in (one.noise, one.bias)),
            )
            for one in found
        ),
    )


def _judge_variances(summary: WorkflowSummary, name: str) -> tuple[float | None, float | None]:
    """Return the variance of Leaf SR from the judge's noise, and from its unknown bias."""
    threshold = summary.scores.leaf_threshold
    (judge,) = (one for one in summary.scores.judges if one.judge == name)
    noise = None
    if summary.leaves is not None and name in summary.leaves.columns:
        noise = _noise(summary.leaves, name, threshold)
    # Millions of leaves are not read without need.
    if noise is None and not summary.people.settled:
        return None, None
    parts = leaf_parts(judge, summary.people, threshold)
    return None if noise is None else noise / len(parts) ** 2, bias_variance(parts)


def _noise(table: LeafTable, judge: str, threshold: float) -> float | None:
    """Return the variance of the number of passed leaves from the judge's repeats.

    The leaves of a unit vary together. Leaves that lack a score in some repeat do not count in
    Leaf SR, nor here.
    """
    column = table.columns[judge]
    repeats = max(column.given)
    whole = (
        ((task, epoch), scores)
        for (task, epoch, _), scores in zip(table.places(), column, strict=True)
        if len(scores) == repeats
    )
    if repeats < 2:
        return None
    spreads = [
        variance(
            sum(succeeds(score, threshold) for score in repeat)
            for repeat in zip(*(scores for _, scores in own), strict=True)
        )
        for _, own in groupby(whole, key=itemgetter(0))
    ]
    return sum(spreads) / repeats if spreads else None


def _spread(parts: Parts) -> tuple[float, float | None] | None:
    """Return the variance of a pooled score, and the part of it between repeats of a task."""
    found = [own.measured() for own in split_tasks(parts).values()]
    total = sum(float(seen.sum()) for _, seen in found)
    rate = sum(float(value.sum()) for value, _ in found) / total if total else 0.0
    moved = [(value - rate * seen) / total for value, seen in found if len(seen)]
    n = len(moved)
    if n < 2:
        return None
    again = [own for own in moved if len(own) > 1]
    within = sum(len(own) * float(own.var(ddof=1)) for own in again)
    return sum(float(own.sum()) ** 2 for own in moved) * n / (n - 1), within if again else None
