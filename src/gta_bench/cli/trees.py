"""The trees of Workflow tasks, for the terminal."""

from collections.abc import Collection, Sequence

import click

from gta_bench.errors import UsageError, few
from gta_bench.records.run import RunManifest
from gta_bench.runs.store import StorePath
from gta_bench.web.material import JudgedRun
from gta_bench.web.reading import read_material
from gta_bench.web.task_view import tree_text, view_task


def write_trees(runs: Sequence[StorePath], tasks: Sequence[str]) -> None:
    """The trees of the named tasks, as every judge saw them."""
    for run in runs:
        material = read_material(run)
        if not isinstance(material, JudgedRun):
            raise UsageError(f"{run} is no Workflow run: only those have trees; leave --task out.")
        summary = material.summary
        check_tasks(run, summary.manifest, [task for task in tasks if task != "all"])
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
    unknown = sorted({*tasks} - {*manifest.spec.tasks})
    if unknown:
        raise UsageError(
            f"{run} has no task {unknown[0]!r}. Its tasks: {few(manifest.spec.tasks)}."
        )
