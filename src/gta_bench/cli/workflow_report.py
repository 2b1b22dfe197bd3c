"""What `gta report` shows of single Workflow tasks: trees as text, and the page."""

from collections.abc import Sequence
from pathlib import Path

import click

from gta_bench.cli.output import say
from gta_bench.errors import UsageError
from gta_bench.judging.evidence_store import EVIDENCE, EvidenceStore
from gta_bench.reports.page import run_page
from gta_bench.reports.task_view import tree_text, view_task
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.runs.directory import log_folder, read_manifest, read_workflow_scores
from gta_bench.runs.logs import ReadWorkflowUnits, read_workflow_units
from gta_bench.runs.verdicts import read_verdicts


def write_page(runs: Sequence[Path], file: Path) -> None:
    """One run as one HTML file."""
    if len(runs) != 1:
        raise UsageError("--html shows one run: name one.")
    run = runs[0]
    summary, found = _read(run)
    store = EvidenceStore(run / EVIDENCE)
    page = run_page(
        summary,
        found.units,
        read_verdicts(run),
        evidence={shown.digest: shown for shown in store.files()},
        picture=store.picture,
    )
    file.write_text(page, encoding="utf-8")
    say(f"The page: {file}")


def write_trees(runs: Sequence[Path], tasks: Sequence[str]) -> None:
    """The trees of the named tasks, as every judge saw them."""
    for run in runs:
        summary, found = _read(run)
        verdicts = read_verdicts(run)
        unknown = sorted({*tasks} - {"all", *summary.manifest.tasks})
        if unknown:
            raise UsageError(f"{run} has no task {unknown[0]!r}.")
        if not summary.scores.judges:
            raise UsageError(f"No judge has seen {run}: `gta score {run} --judge MODEL`.")
        for unit in found.units:
            if "all" not in tasks and unit.task.id not in tasks:
                continue
            for judge in summary.scores.judges:
                view = view_task(
                    unit,
                    judge,
                    verdicts,
                    leaf_threshold=summary.scores.leaf_threshold,
                    root_threshold=summary.scores.root_threshold,
                )
                click.echo(f"{tree_text(unit, view)}\n")


def _read(run: Path) -> tuple[WorkflowSummary, ReadWorkflowUnits]:
    manifest = read_manifest(run)
    if manifest.mode != "workflow":
        raise UsageError(f"{run} is no Workflow run: only those have trees and a page.")
    summary = WorkflowSummary(str(run), manifest, read_workflow_scores(run))
    return summary, read_workflow_units(log_folder(run), manifest.tasks, manifest.epochs)
