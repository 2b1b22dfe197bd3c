"""`gta import`: finished results of elsewhere become an ordinary run."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from gta_bench.cli.grouping import add_options
from gta_bench.cli.options import config_path, data_option
from gta_bench.cli.output import say
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest, task_digests
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.selection import select_tasks
from gta_bench.datasets.upstream import dummy_notes, read_predictions, read_workflow_predictions
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError, counted
from gta_bench.harnesses.collecting import FoundFile, keep_files
from gta_bench.harnesses.delivery import Finished, kept_inputs, write_finished
from gta_bench.harnesses.finished import read_folder, read_pack
from gta_bench.records.finding import Finding
from gta_bench.records.finished import ResultMeta
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
from gta_bench.runs.directory import open_run
from gta_bench.runs.imported import write_imported
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from gta_bench.settings import read_settings

UNKNOWN = "unknown"
AGENT = "imported"
SHOWN = 10


@click.group("import")
def import_group() -> None:
    """Bring finished results into a run that is scored like any other."""


_Command = Callable[..., None]


def _system_options(command: _Command) -> _Command:
    """Where the run goes, and what the results are of."""
    options = (
        click.option("--out", type=click.Path(), required=True, help="The run's folder."),
        click.option("--tasks", help="Tasks that were done: positions (0:30) or ids (3,5,7)."),
        click.option("--model", help="The model's name, for reports."),
        click.option("--harness", help="The agent system's name, for reports."),
        click.option("--harness-version", help="Its version."),
        data_option,
    )
    return add_options(command, options)


def _dataset_option(default: DatasetName) -> Callable[[_Command], _Command]:
    choice = click.Choice(["atomic", "workflow"])
    return click.option("--dataset", "name", type=choice, default=default, show_default=True)


@import_group.command("folder")
@click.argument("source", type=click.Path(exists=True, file_okay=False))
@_dataset_option("workflow")
@_system_options
@click.pass_obj
def folder_command(
    config_file: str | None,
    source: str,
    name: DatasetName,
    out: str,
    tasks: str | None,
    model: str | None,
    harness: str | None,
    harness_version: str | None,
    folder: str | None,
) -> None:
    """Results of any system: a folder a task, with `final.txt`, `files/` and `meta.json`.

    Tasks without a folder were not delivered. Files may also lie beside final.txt, and folders may
    be called `task_7`.
    """
    dataset = _dataset(config_file, name, folder)
    finished = read_folder(Path(source), dataset.tasks)
    given = ResultMeta(model=model, harness=harness, harness_version=harness_version)
    _import_finished(Path(source), Path(out), dataset, finished, given, tasks)


@import_group.command("pack")
@click.argument("source", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False),
    help="Folder that attachments lie in; the pack's own unless given.",
)
@_dataset_option("workflow")
@_system_options
@click.pass_obj
def pack_command(
    config_file: str | None,
    source: str,
    root: str | None,
    name: DatasetName,
    out: str,
    tasks: str | None,
    model: str | None,
    harness: str | None,
    harness_version: str | None,
    folder: str | None,
) -> None:
    """An eval pack of the published pipeline (schema_version 1) with its attachments.

    Attachments are read below the pack's folder or --root, and nowhere else.
    """
    dataset = _dataset(config_file, name, folder)
    below = None if root is None else Path(root)
    finished = read_pack(Path(source), dataset.tasks, root=below)
    given = ResultMeta(model=model, harness=harness, harness_version=harness_version)
    _import_finished(Path(source), Path(out), dataset, finished, given, tasks)


def _dataset(config_file: str | None, name: DatasetName, folder: str | None) -> Dataset:
    settings = read_settings(config_path(config_file), overrides={f"data.{name}": folder}).settings
    if name == "workflow":
        return load_workflow(dataset_root(settings.data.workflow))
    return load_atomic(dataset_root(settings.data.atomic))


def _import_finished(
    source: Path,
    out: Path,
    dataset: Dataset,
    finished: Finished,
    given: ResultMeta,
    tasks: str | None,
) -> None:
    """The command line names the system, else the results do."""
    mode: RunMode = "workflow" if isinstance(dataset, WorkflowDataset) else "end-to-end"
    system = System(
        model=given.model or finished.stated("model") or UNKNOWN,
        agent=AGENT,
        harness=given.harness or finished.stated("harness"),
        harness_version=given.harness_version or finished.stated("harness_version"),
    )
    planned = _manifest(dataset, mode, system, source, tasks)
    made = write_finished(out, planned, dataset, finished)
    _say_how_many(made.tasks, list(made.missing), out)
    if mode == "workflow":
        say(f"{made.files} deliverable{'' if made.files == 1 else 's'}.")
    _say_findings(made.findings)
    say(f"Next: gta score {out}{' --judge MODEL' if mode == 'workflow' else ''}")


@import_group.command("opencompass")
@click.argument("source", type=click.Path(exists=True))
@_dataset_option("atomic")
@click.option(
    "--mode", type=click.Choice(["step", "end-to-end"]), help="Needed for GTA-Atomic, only."
)
@_system_options
@click.pass_obj
def opencompass_command(
    config_file: str | None,
    source: str,
    name: DatasetName,
    mode: Mode | None,
    out: str,
    tasks: str | None,
    model: str | None,
    harness: str | None,
    harness_version: str | None,
    folder: str | None,
) -> None:
    """Results of the published pipeline.

    GTA-Atomic: a prediction file, or a folder of its parts. GTA-Workflow: a folder of `task<ID>`
    folders with prediction.json, attachments and, if it was judged, the stored scores.
    """
    if (mode is None) == (name == "atomic"):
        raise UsageError("--mode step|end-to-end belongs to --dataset atomic, and only to it.")
    dataset = _dataset(config_file, name, folder)
    system = System(
        model=model or UNKNOWN, agent=AGENT, harness=harness, harness_version=harness_version
    )
    manifest = _manifest(dataset, mode or "workflow", system, Path(source), tasks)
    if isinstance(dataset, WorkflowDataset):
        _import_workflow(Path(source), Path(out), dataset, manifest)
    else:
        _import_atomic(Path(source), Path(out), dataset, manifest)
    say(f"Next: gta score {out}")


def _import_atomic(source: Path, out: Path, dataset: AtomicDataset, planned: RunManifest) -> None:
    assert planned.spec.mode != "workflow"
    found = read_predictions(source, dataset, planned.spec.mode)
    units = [unit for unit in found.units if unit.task.id in planned.spec.tasks]
    write_imported(out, open_run(out, planned), units)
    _say_how_many(len(units), [unit.task.id for unit in units if unit.trace is None], out)
    _say_findings(found.findings)


def _import_workflow(
    source: Path, out: Path, dataset: WorkflowDataset, planned: RunManifest
) -> None:
    stored = read_workflow_predictions(source, dataset)
    found = [one for one in stored if one.task.id in planned.spec.tasks]
    notes = dummy_notes([call for one in found for call in one.calls])
    manifest = open_run(out, planned.model_copy(update={"notes": (*planned.notes, *notes)}))
    store = ArtefactStore(out / ARTEFACTS)
    units = [
        WorkflowUnit(
            task=one.task,
            delivered=one.delivered,
            trace=one.trace,
            calls=one.calls,
            inputs=kept_inputs(dataset, one.task, store),
            digests=task_digests(dataset, one.task.id),
            deliverables=keep_files(
                store, [FoundFile(file.parent, (file.name,), file.name) for file in one.files]
            ).deliverables,
        )
        for one in found
    ]
    write_imported(out, manifest, units)
    kept = read_verdicts(out)
    rows = [row for one in found for row in one.verdicts]
    append_verdicts(out, [row for row in rows if row.key not in kept])
    _say_how_many(len(units), [unit.task.id for unit in units if not unit.delivered], out)
    files = sum(len(unit.deliverables) for unit in units)
    unscored = sum(isinstance(row.verdict, Unscored) for row in rows)
    say(
        f"{counted(files, 'deliverable')}, {counted(len(rows), 'stored verdict')}, "
        f"{unscored} of them without a score."
    )
    for note in notes:
        say(note)


def _manifest(
    dataset: Dataset, mode: RunMode, system: System, source: Path, tasks: str | None
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
        imported_from=source.name,
    )


def _say_how_many(total: int, missing: list[str], out: Path) -> None:
    say(f"{total - len(missing)} of {counted(total, 'task')} imported into {out}.")
    if missing:
        say(f"Not delivered, counted as failed under strict: {' '.join(missing)}")


def _say_findings(findings: Sequence[Finding]) -> None:
    for finding in findings[:SHOWN]:
        place = f"task {finding.task}, " if finding.task else ""
        say(f"{place}{finding.field or finding.file}: {finding.message}")
    if len(findings) > SHOWN:
        say(f"… and {counted(len(findings) - SHOWN, 'more finding')}.")
