"""`gta export`: tasks and traces for other frameworks."""

from pathlib import Path

import click

from gta_bench.cli.options import RUN, config_path, data_option
from gta_bench.cli.output import say
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.selection import select_tasks
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import counted
from gta_bench.runs.store import StorePath
from gta_bench.settings import read_settings


@click.group("export")
def export_group() -> None:
    """Tasks and traces in the formats of other frameworks."""


@export_group.command("harbor")
@click.option("--dataset", "name", type=click.Choice(["atomic", "workflow"]), required=True)
@click.option("--tasks", help="Positions (0:20) or ids (3,5,7); all unless given.")
@click.option("--out", type=click.Path(file_okay=False), required=True, help="A new folder.")
@data_option
@click.pass_obj
def harbor_command(
    config_file: str | None, name: str, tasks: str | None, out: str, folder: str | None
) -> None:
    """Tasks as Harbor's task folders: our tools by MCP, our scoring as the verifier."""
    from gta_bench.exports.harbor import export_harbor

    overrides = {f"data.{name}": folder}
    settings = read_settings(config_path(config_file), overrides=overrides).settings
    dataset: Dataset = (
        load_atomic(Path(settings.data.atomic))
        if name == "atomic"
        else load_workflow(Path(settings.data.workflow))
    )
    made = export_harbor(dataset, select_tasks(dataset.tasks, tasks), Path(out))
    say(f"{counted(len(made.folders), 'task')} in {out}.")
    if made.left_out:
        names = " ".join(made.left_out)
        say(f"Left out, as their product is an image and their calls are scored: {names}")
    if made.missing:
        lacking = counted(len(made.missing), "file")
        say(f"The dataset lacks {lacking}: {' '.join(made.missing[:10])}")


@export_group.command("atif")
@click.argument("run", type=RUN)
@click.option("--out", type=click.Path(file_okay=False), required=True, help="A new folder.")
def atif_command(run: StorePath, out: str) -> None:
    """The traces of RUN as ATIF trajectories, a file for each task and epoch."""
    from gta_bench.exports.atif import export_atif

    say(f"{counted(export_atif(run, Path(out)), 'trajectory', 'trajectories')} in {out}.")
