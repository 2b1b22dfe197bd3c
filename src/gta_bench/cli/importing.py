"""`gta import`: finished results of elsewhere become an ordinary run."""

from datetime import UTC, datetime
from pathlib import Path

import click

from gta_bench.cli.options import config_path, data_option
from gta_bench.cli.output import say
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.upstream_predictions import read_predictions
from gta_bench.datasets.upstream_workflow import read_workflow_predictions
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.records.deliverables import Deliverable
from gta_bench.records.run import DatasetName, Mode, RunManifest, RunMode, System, WorkflowUnit
from gta_bench.records.verdicts import Unscored
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import open_run
from gta_bench.runs.imported import write_imported, write_imported_workflow
from gta_bench.runs.verdicts import append_verdicts, read_verdicts
from gta_bench.settings import read_settings


@click.group("import")
def import_group() -> None:
    """Bring finished results into a run that is scored like any other."""


@import_group.command("opencompass")
@click.argument("source", type=click.Path(exists=True))
@click.option(
    "--dataset",
    "name",
    type=click.Choice(["atomic", "workflow"]),
    default="atomic",
    show_default=True,
)
@click.option(
    "--mode", type=click.Choice(["step", "end-to-end"]), help="Needed for GTA-Atomic, only."
)
@click.option("--out", type=click.Path(), required=True, help="The run's folder.")
@click.option(
    "--model", default="unknown", show_default=True, help="The model's name, for reports."
)
@data_option
@click.pass_obj
def opencompass_command(
    config_file: str | None,
    source: str,
    name: DatasetName,
    mode: Mode | None,
    out: str,
    model: str,
    folder: str | None,
) -> None:
    """Results of the published pipeline.

    GTA-Atomic: a prediction file, or a folder of its parts. GTA-Workflow: a folder of `task<ID>`
    folders with prediction.json, attachments and, if it was judged, the stored scores.
    """
    if (mode is None) == (name == "atomic"):
        raise UsageError("--mode step|end-to-end belongs to --dataset atomic, and only to it.")
    settings = read_settings(config_path(config_file), overrides={f"data.{name}": folder}).settings
    if mode is None:
        _import_workflow(Path(source), Path(out), Path(settings.data.workflow), model)
    else:
        _import_atomic(Path(source), Path(out), Path(settings.data.atomic), model, mode)
    say(f"Next: gta score {out}")


def _import_atomic(source: Path, out: Path, data: Path, model: str, mode: Mode) -> None:
    dataset = load_atomic(data)
    found = read_predictions(source, dataset, mode)
    manifest = _manifest(dataset, mode, model, source)
    write_imported(out, open_run(out, manifest), found.units)
    missing = [unit.task.id for unit in found.units if unit.trace is None]
    _say_how_many(len(found.units), missing, out)
    for finding in found.findings[:5]:
        say(f"task {finding.task}, {finding.field}: {finding.message}")
    if len(found.findings) > 5:
        say(f"… and {len(found.findings) - 5} more findings of this kind.")


def _import_workflow(source: Path, out: Path, data: Path, model: str) -> None:
    dataset = load_workflow(data)
    found = read_workflow_predictions(source, dataset)
    manifest = open_run(out, _manifest(dataset, "workflow", model, source))
    store = ArtefactStore(out / ARTEFACTS)
    units = [
        WorkflowUnit(
            task=one.task,
            trace=one.trace,
            calls=one.calls,
            inputs=tuple(_kept(store, path, file) for path, file in one.inputs),
            deliverables=tuple(_kept(store, f"outputs/{file.name}", file) for file in one.files),
        )
        for one in found
    ]
    write_imported_workflow(out, manifest, units)
    kept = read_verdicts(out)
    rows = [row for one in found for row in one.verdicts]
    append_verdicts(out, [row for row in rows if row.key not in kept])
    _say_how_many(len(units), [unit.task.id for unit in units if not unit.trace], out)
    files = sum(len(unit.deliverables) for unit in units)
    unscored = sum(isinstance(row.verdict, Unscored) for row in rows)
    say(f"{files} deliverables, {len(rows)} stored verdicts, {unscored} of them without a score.")


def _manifest(dataset: Dataset, mode: RunMode, model: str, source: Path) -> RunManifest:
    return RunManifest(
        created=datetime.now(UTC),
        dataset="workflow" if mode == "workflow" else "atomic",
        dataset_digest=dataset_digest(dataset),
        mode=mode,
        system=System(model=model, agent="imported"),
        tasks=tuple(dataset.tasks),
        imported_from=source.name,
    )


def _kept(store: ArtefactStore, path: str, file: Path) -> Deliverable:
    data = file.read_bytes()
    return Deliverable(path=path, digest=store.keep(data), size=len(data))


def _say_how_many(total: int, missing: list[str], out: Path) -> None:
    say(f"{total - len(missing)} of {total} tasks imported into {out}.")
    if missing:
        say(f"Without prediction, counted as failed under strict: {' '.join(missing)}")
