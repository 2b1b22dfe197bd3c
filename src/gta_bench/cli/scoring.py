"""Runs scored as every command does it: by a similarity model, or from the judges' verdicts."""

from collections.abc import Sequence
from pathlib import Path

from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.run import Mode, Unit
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import log_folder, read_manifest, write_scores
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings
from gta_bench.similarity.model import Similarity


def scored(
    units: Sequence[Unit],
    mode: Mode,
    similarity: Similarity,
    not_run: Sequence[tuple[str, int]] = (),
) -> RunScores:
    """Both scorings, with the similarity's name and whether it is upstream's."""
    return score_run(
        units,
        mode,
        similarity=similarity.measure,
        similarity_name=similarity.name,
        comparable=similarity.comparable,
        not_run=not_run,
    )


def score_workflow_run(run: Path, settings: Settings) -> WorkflowScores:
    """Score a Workflow run from its units and verdicts, and keep the scores; no model is asked."""
    # Reading logs needs the evaluation engine.
    from gta_bench.runs.logs import read_workflow_units

    manifest = read_manifest(run)
    found = read_workflow_units(log_folder(run), manifest.tasks, manifest.epochs)
    scores = score_workflow(
        found.units,
        read_verdicts(run).values(),
        thresholds=Thresholds(settings.judge.leaf_threshold, settings.judge.root_threshold),
        not_run=found.not_run,
    )
    write_scores(run, scores)
    return scores
