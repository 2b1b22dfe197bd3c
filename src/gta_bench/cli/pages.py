"""What pages and trees are made from, read from the folders of runs."""

from collections.abc import Collection, Sequence

import click

from gta_bench.cli.needs import needs_report_extra
from gta_bench.errors import UsageError
from gta_bench.judging.evidence_store import EVIDENCE, EvidenceStore
from gta_bench.records.run import RunManifest
from gta_bench.reports.material import AtomicRun, JudgedRun, RunMaterial
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.task_view import tree_text, view_task
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.runs.directory import (
    log_folder,
    read_floors,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.logs import read_units, read_workflow_units
from gta_bench.runs.store import StorePath
from gta_bench.runs.verdicts import read_verdicts


def write_page(runs: Sequence[StorePath], file: StorePath, *, wanted: Collection[str] = ()) -> None:
    """The runs as one HTML file."""
    needs_report_extra("scipy")
    from gta_bench.reports.page import report_page

    names = [run.resolve().name for run in runs]
    unique = len(set(names)) == len(names)
    materials = [
        read_material(run, name if unique else str(run))
        for run, name in zip(runs, names, strict=True)
    ]
    page = report_page(materials, wanted=wanted)
    file.write_text(page, encoding="utf-8")


def write_trees(runs: Sequence[StorePath], tasks: Sequence[str]) -> None:
    """The trees of the named tasks, as every judge saw them."""
    for run in runs:
        material = read_material(run)
        if not isinstance(material, JudgedRun):
            raise UsageError(f"{run} is no Workflow run: only those have trees.")
        summary = material.summary
        check_tasks(run, material.manifest, [task for task in tasks if task != "all"])
        if not summary.scores.judges:
            raise UsageError(f"No judge has seen {run}: `gta score {run} --judge MODEL`.")
        for unit in material.units:
            if "all" not in tasks and unit.task.id not in tasks:
                continue
            for judge in summary.scores.judges:
                view = view_task(
                    unit,
                    judge,
                    material.verdicts,
                    leaf_threshold=summary.scores.leaf_threshold,
                    root_threshold=summary.scores.root_threshold,
                )
                click.echo(f"{tree_text(unit, view)}\n")


def check_tasks(run: StorePath, manifest: RunManifest, tasks: Collection[str]) -> None:
    """Refuse a task that the run does not have."""
    unknown = sorted({*tasks} - {*manifest.tasks})
    if unknown:
        raise UsageError(f"{run} has no task {unknown[0]!r}.")


def read_material(run: StorePath, name: str | None = None) -> RunMaterial:
    """Everything of a run that a page shows, under its path or another name."""
    name = name or str(run)
    manifest = read_manifest(run)
    if manifest.mode != "workflow":
        found = read_units(log_folder(run), manifest.tasks, manifest.epochs)
        return AtomicRun(RunSummary(name, manifest, read_scores(run)), found.units)
    store = EvidenceStore(run / EVIDENCE)
    return JudgedRun(
        WorkflowSummary(name, manifest, read_workflow_scores(run), read_floors(run)),
        read_workflow_units(log_folder(run), manifest.tasks, manifest.epochs).units,
        read_verdicts(run),
        evidence={shown.digest: shown for shown in store.files()},
        picture=store.picture,
    )
