"""`gta import`: finished results of elsewhere become an ordinary run."""

from datetime import UTC, datetime
from pathlib import Path

import click

from gta_bench.cli.options import config_path, data_option
from gta_bench.cli.output import say
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.upstream_predictions import read_predictions
from gta_bench.records.run import Mode, RunManifest, System
from gta_bench.runs.directory import open_run
from gta_bench.runs.imported import write_imported
from gta_bench.settings import read_settings


@click.group("import")
def import_group() -> None:
    """Bring finished results into a run that is scored like any other."""


@import_group.command("opencompass")
@click.argument("source", type=click.Path(exists=True))
@click.option("--mode", type=click.Choice(["step", "end-to-end"]), required=True)
@click.option("--out", type=click.Path(), required=True, help="The run's folder.")
@click.option(
    "--model", default="unknown", show_default=True, help="The model's name, for reports."
)
@data_option
@click.pass_obj
def opencompass_command(
    config_file: str | None, source: str, mode: Mode, out: str, model: str, folder: str | None
) -> None:
    """Predictions of the published GTA-Atomic pipeline: one file, or a folder of parts."""
    overrides = {"data.atomic": folder}
    settings = read_settings(config_path(config_file), overrides=overrides).settings
    dataset = load_atomic(Path(settings.data.atomic))
    found = read_predictions(Path(source), dataset, mode)
    manifest = RunManifest(
        created=datetime.now(UTC),
        dataset="atomic",
        dataset_digest=dataset_digest(dataset),
        mode=mode,
        system=System(model=model, agent="imported"),
        tasks=tuple(dataset.tasks),
        imported_from=Path(source).name,
    )
    write_imported(Path(out), open_run(Path(out), manifest), found.units)
    missing = [unit.task.id for unit in found.units if unit.trace is None]
    say(f"{len(found.units) - len(missing)} of {len(found.units)} tasks imported into {out}.")
    if missing:
        say(f"Without prediction, counted as failed under strict: {' '.join(missing)}")
    for finding in found.findings[:5]:
        say(f"task {finding.task}, {finding.field}: {finding.message}")
    if len(found.findings) > 5:
        say(f"… and {len(found.findings) - 5} more findings of this kind.")
    say(f"Next: gta score {out}")
