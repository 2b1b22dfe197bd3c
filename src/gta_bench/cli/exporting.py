"""`gta export`: tasks and traces for other frameworks; `gta results`: runs as tables."""

from pathlib import Path
from typing import Literal

import click

from gta_bench.cli.options import (
    DATASET,
    NEW_FOLDER,
    RUN,
    STORE_PATH,
    command_settings,
    data_option,
    load_dataset,
)
from gta_bench.cli.output import say
from gta_bench.datasets.selection import select_tasks
from gta_bench.errors import format_count
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.packages import require_packages
from gta_bench.records.run import DatasetName
from gta_bench.runs.store import StorePath


@click.group("export")
def export_group() -> None:
    """Export tasks and traces in the formats of other frameworks."""


@export_group.command("harbor")
@click.option("--dataset", "name", type=DATASET, required=True, help="Dataset to export.")
@click.option("--tasks", show_default="all", help="Tasks by position (0:20) or by id (3,5,7).")
@click.option("--out", type=NEW_FOLDER, required=True, help="Folder for the task folders.")
@data_option
def harbor_command(name: DatasetName, tasks: str | None, out: Path, folder: str | None) -> None:
    """Export tasks as Harbor task folders, with our tools over MCP and our scoring as verifier."""
    from gta_bench.exports.harbor import export_harbor

    dataset = load_dataset(name, folder)
    made = export_harbor(dataset, select_tasks(dataset.tasks, tasks), out)
    say(f"Exported {format_count(len(made.folders), 'task')} to {out}.")
    if made.left_out:
        names = " ".join(made.left_out)
        say(f"Left out, because they produce an image and are scored by their calls: {names}")
    if made.missing:
        lacking = format_count(len(made.missing), "file")
        say(f"{lacking} missing from the dataset: {' '.join(made.missing[:10])}")


@export_group.command("atif")
@click.argument("run", type=RUN)
@click.option("--out", type=NEW_FOLDER, required=True, help="An empty or new folder.")
def atif_command(run: StorePath, out: Path) -> None:
    """Export the traces of RUN as ATIF trajectories, one file per task and epoch."""
    from gta_bench.exports.atif import export_atif

    files = format_count(export_atif(run, out), "trajectory", "trajectories")
    say(f"Exported {files} to {out}.")


@click.group()
def results() -> None:
    """Export runs as tables, with a row for each sample, verdict and failure."""


@results.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@click.option("--out", required=True, type=STORE_PATH, help="A new folder, or s3://….")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    help="File format of the tables.",
)
def export(runs: tuple[StorePath, ...], out: StorePath, shape: Literal["parquet", "csv"]) -> None:
    """Write RUNS as tables below --out: a folder per table, a file per run.

    docs/reference/results.md lists the columns. `gta report OUT` shows the scores of exported
    runs, also with millions of verdicts.
    """
    require_packages("gta results export", "duckdb", extra="report")
    from gta_bench.runs.results_table import export_results

    judge = command_settings().judge
    thresholds = Thresholds(judge.leaf_threshold, judge.root_threshold)
    rows = export_results(runs, out, thresholds=thresholds, shape=shape)
    counts = (format_count(count, table.removesuffix("s")) for table, count in rows.items())
    say(f"Wrote {', '.join(counts)} to {out}.")
