"""`gta import`: finished results from elsewhere become an ordinary run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gta_bench.cli.options import (
    DATASET,
    FILE,
    FOLDER,
    NEW_FOLDER,
    Decorator,
    combine_options,
    data_option,
    load_dataset,
)
from gta_bench.cli.output import say
from gta_bench.datasets.canary import read_canaries
from gta_bench.datasets.digest import dataset_digest, task_digests
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.selection import select_tasks
from gta_bench.datasets.upstream import dummy_notes, read_predictions, read_workflow_predictions
from gta_bench.errors import UsageError, format_count
from gta_bench.harnesses.agentcompass import read_agentcompass
from gta_bench.harnesses.collecting import FoundFile, keep_files
from gta_bench.harnesses.delivery import Finished, store_task_inputs, write_finished
from gta_bench.harnesses.finished import read_folder, read_pack
from gta_bench.records.finding import Finding
from gta_bench.records.run import (
    OWN_TOOLS,
    DatasetName,
    Mode,
    RunManifest,
    RunMode,
    RunSpec,
    System,
)
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Unscored
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import find_run, open_run
from gta_bench.runs.imported import write_imported
from gta_bench.runs.verdicts import append_verdicts, read_verdicts

UNKNOWN = "unknown"
AGENT = "imported"
SHOWN = 10


@click.group("import")
def import_group() -> None:
    """Import finished results as a run that is scored like any other."""


def _import_options(default: DatasetName) -> Decorator:
    return combine_options(
        click.option(
            "--dataset", "name", type=DATASET, default=default, help="Dataset of the results."
        ),
        click.option("--out", type=NEW_FOLDER, required=True, help="Folder for the run."),
        click.option(
            "--tasks",
            show_default="all",
            help="Tasks that were attempted, by position (0:30) or by id (3,5,7).",
        ),
        click.option("--model", help="Name of the model, for reports."),
        click.option("--harness", help="Name of the harness, for reports."),
        click.option("--harness-version", help="Version of the harness, for reports."),
        data_option,
    )


@import_group.command("folder")
@click.argument("source", type=FOLDER)
@_import_options("workflow")
def folder_command(
    source: Path, name: DatasetName, out: Path, folder: str | None, **options: Any
) -> None:
    """Import results of any system: one folder per task in SOURCE.

    A task folder is named after the task (7 or task_7) and contains `final.txt`, `files/` and
    `meta.json`; files may also be next to final.txt. A task without a folder was not delivered.
    """
    dataset = load_dataset(name, folder)
    _import_finished(source.name, out, dataset, read_folder(source, dataset.tasks), options)


@import_group.command("pack")
@click.argument("source", type=FILE)
@click.option(
    "--root",
    type=FOLDER,
    show_default="the folder of the pack",
    help="Folder that contains the attachments.",
)
@_import_options("workflow")
def pack_command(
    source: Path,
    root: Path | None,
    name: DatasetName,
    out: Path,
    folder: str | None,
    **options: Any,
) -> None:
    """Import an eval pack of the published pipeline (schema_version 1) with its attachments.

    Attachments are read only from below the pack's folder or --root.
    """
    dataset = load_dataset(name, folder)
    _import_finished(
        source.name, out, dataset, read_pack(source, dataset.tasks, root=root), options
    )


@import_group.command("agentcompass")
@click.argument("source", type=FOLDER)
@click.option(
    "--attempt",
    type=click.IntRange(1),
    default=1,
    help="Which attempt of each task to import.",
)
@_import_options("workflow")
def agentcompass_command(
    source: Path, attempt: int, name: DatasetName, out: Path, folder: str | None, **options: Any
) -> None:
    """Import a run of AgentCompass with our plugin.

    SOURCE is the folder of the run, with `details/` in it. The plugin stored the tool calls, the
    answer and the deliverables of each attempt there.
    """
    dataset = load_dataset(name, folder)
    tasks = select_tasks(dataset.tasks, options["tasks"])
    finished = read_agentcompass(source, dataset, tasks, attempt=attempt)
    origin = source.name if attempt == 1 else f"{source.name}, attempt {attempt}"
    _import_finished(origin, out, dataset, finished, options)


def _import_finished(
    origin: str, out: Path, dataset: Dataset, finished: Finished, options: dict[str, Any]
) -> None:
    """Write the run; the command line overrides how the results name the system."""
    mode: RunMode = "workflow" if isinstance(dataset, WorkflowDataset) else "end-to-end"
    system = System(
        model=options["model"] or finished.stated("model") or UNKNOWN,
        agent=AGENT,
        harness=options["harness"] or finished.stated("harness"),
        harness_version=options["harness_version"] or finished.stated("harness_version"),
    )
    planned = _plan_manifest(dataset, mode, system, origin, options["tasks"])
    replaced = _count_replaced(out, planned)
    made = write_finished(out, planned, dataset, finished)
    _say_imported(made.tasks, list(made.missing), out, replaced)
    if mode == "workflow":
        say(f"{format_count(made.files, 'deliverable')}.")
    _say_findings(made.findings)
    say(f"Next: gta score {out}{' --judge MODEL' if mode == 'workflow' else ''}")


@import_group.command("opencompass")
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--mode",
    type=click.Choice(["step", "end-to-end"]),
    help="Mode of the results; required for GTA-Atomic, and only there.",
)
@_import_options("atomic")
def opencompass_command(
    source: Path,
    name: DatasetName,
    mode: Mode | None,
    out: Path,
    tasks: str | None,
    model: str | None,
    folder: str | None,
    **harness: str | None,
) -> None:
    """Import results of the published pipeline.

    GTA-Atomic: SOURCE is a prediction file, or a folder of its parts. GTA-Workflow: SOURCE is a
    folder of `task<ID>` folders with prediction.json, attachments and, if judged, stored scores.
    """
    if (mode is None) == (name == "atomic"):
        raise UsageError("--mode step|end-to-end is required for --dataset atomic, and only there.")
    dataset = load_dataset(name, folder)
    system = System(model=model or UNKNOWN, agent=AGENT, **harness)
    manifest = _plan_manifest(dataset, mode or "workflow", system, source.name, tasks)
    if isinstance(dataset, WorkflowDataset):
        _import_workflow(source, out, dataset, manifest)
    else:
        _import_atomic(source, out, dataset, manifest)
    say(f"Next: gta score {out}")


def _import_atomic(source: Path, out: Path, dataset: AtomicDataset, planned: RunManifest) -> None:
    assert planned.spec.mode != "workflow"
    found = read_predictions(source, dataset, planned.spec.mode)
    units = [unit for unit in found.units if unit.task.id in planned.spec.tasks]
    replaced = _count_replaced(out, planned)
    write_imported(out, open_run(out, planned), units)
    missing = [unit.task.id for unit in units if unit.trace is None]
    _say_imported(len(units), missing, out, replaced)
    _say_findings(found.findings)


def _import_workflow(
    source: Path, out: Path, dataset: WorkflowDataset, planned: RunManifest
) -> None:
    stored = read_workflow_predictions(source, dataset)
    found = [one for one in stored if one.task.id in planned.spec.tasks]
    notes = dummy_notes([call for one in found for call in one.calls])
    replaced = _count_replaced(out, planned)
    manifest = open_run(out, planned.model_copy(update={"notes": (*planned.notes, *notes)}))
    store = ArtefactStore(out / ARTEFACTS)
    units = [
        WorkflowUnit(
            task=one.task,
            delivered=one.delivered,
            trace=one.trace,
            calls=one.calls,
            inputs=store_task_inputs(dataset, one.task, store),
            digests=task_digests(dataset, one.task.id),
            deliverables=keep_files(
                store, [FoundFile(file.parent, (file.name,), file.name) for file in one.files]
            ).deliverables,
        )
        for one in found
    ]
    write_imported(out, manifest, units)
    known = read_verdicts(out)
    rows = [row for one in found for row in one.verdicts]
    append_verdicts(out, [row for row in rows if row.key not in known])
    missing = [unit.task.id for unit in units if not unit.delivered]
    _say_imported(len(units), missing, out, replaced)
    files = sum(len(unit.deliverables) for unit in units)
    unscored = sum(isinstance(row.verdict, Unscored) for row in rows)
    say(
        f"{format_count(files, 'deliverable')}, {format_count(len(rows), 'stored verdict')}, "
        f"{unscored} of them without a score."
    )
    for note in notes:
        say(note)


def _plan_manifest(
    dataset: Dataset, mode: RunMode, system: System, origin: str, tasks: str | None
) -> RunManifest:
    return RunManifest(
        created=datetime.now(UTC),
        spec=RunSpec(
            dataset="workflow" if mode == "workflow" else "atomic",
            mode=mode,
            system=system,
            tasks=select_tasks(dataset.tasks, tasks),
            tools=OWN_TOOLS,
        ),
        dataset_digest=dataset_digest(dataset),
        dataset_tasks=len(dataset.tasks),
        imported_from=origin,
        canaries=read_canaries(dataset.root),
    )


def _count_replaced(out: Path, planned: RunManifest) -> int:
    """Return how many tasks of an earlier import are imported again; the last import counts."""
    kept = find_run(out, planned)
    return 0 if kept is None else len({*kept.spec.tasks} & {*planned.spec.tasks})


def _say_imported(total: int, missing: list[str], out: Path, replaced: int) -> None:
    say(f"{total - len(missing)} of {format_count(total, 'task')} imported into {out}.")
    if replaced:
        say(f"{format_count(replaced, 'task')} had been imported before; the new results count.")
    if missing:
        say(f"Not delivered, so strict scoring counts them as failed: {' '.join(missing)}")


def _say_findings(findings: Sequence[Finding]) -> None:
    for finding in findings[:SHOWN]:
        task = f"task {finding.task}, " if finding.task else ""
        say(f"{task}{finding.field or finding.file}: {finding.message}")
    if len(findings) > SHOWN:
        say(f"… and {format_count(len(findings) - SHOWN, 'more finding')}.")
