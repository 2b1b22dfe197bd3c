"""The metrics of a run with their intervals, by judge."""

from collections.abc import Iterator

from gta_bench.exports.unit_scores import UnitScores
from gta_bench.records.scores import RunScores
from gta_bench.reports.certainty import RunMetrics, collect_metrics
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.workflow_summary import WorkflowSummary


def list_metrics(scores: UnitScores) -> Iterator[RunMetrics]:
    """Yield the metrics by every judge of these scores, or those of GTA-Atomic."""
    name, manifest = str(scores.run), scores.manifest
    summary: RunSummary | WorkflowSummary
    if isinstance(scores.scores, RunScores):
        summary = RunSummary(name, manifest, scores.scores)
    else:
        summary = WorkflowSummary(name, manifest, scores.scores)
    for found in collect_metrics([summary]):
        if not found.judge or found.judge in scores.judges:
            yield found
