"""A stored Workflow run scored from its units and verdicts; no model is asked."""

from gta_bench.metrics.panel import panel_rows
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.judges import read_judges
from gta_bench.runs.logs import read_units
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings


def score_workflow_run(run: StorePath, settings: Settings) -> WorkflowScores:
    """Score the run by every judge that was asked, and keep the scores."""
    manifest = read_manifest(run)
    found = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit)
    rows = list(read_verdicts(run).values())
    if settings.judge.panel is not None:
        rows += panel_rows(rows, settings.judge.panel)
    scores = score_workflow(
        found.units,
        rows,
        thresholds=Thresholds(settings.judge.leaf_threshold, settings.judge.root_threshold),
        not_run=found.not_run,
        asked=[entry.name for entry in read_judges(run).judges],
    )
    write_scores(run, scores)
    return scores
