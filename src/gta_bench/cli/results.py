"""`gta results`: runs as tables for any other analysis."""

from typing import Literal

import click

from gta_bench.cli.options import PLACE, RUN, config_path
from gta_bench.cli.output import say
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.packages import require_packages
from gta_bench.runs.store import StorePath
from gta_bench.settings import read_settings


@click.group()
def results() -> None:
    """Runs as tables: a row for each sample, verdict and failure."""


@results.command()
@click.argument("runs", nargs=-1, required=True, type=RUN)
@click.option("--out", required=True, type=PLACE, help="A new folder, or s3://….")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["parquet", "csv"]),
    default="parquet",
    show_default=True,
)
@click.pass_obj
def export(
    config_file: str | None,
    /,
    runs: tuple[StorePath, ...],
    out: StorePath,
    shape: Literal["parquet", "csv"],
) -> None:
    """Write the tables of RUNS below --out: a folder for each table, a file for each run.

    docs/reference/results.md has the columns. `gta report OUT` shows the scores of exported runs;
    with millions of verdicts too.
    """
    require_packages("gta results export", "duckdb", extra="report")
    from gta_bench.runs.results_table import export_results

    judge = read_settings(config_path(config_file)).settings.judge
    thresholds = Thresholds(judge.leaf_threshold, judge.root_threshold)
    rows = export_results(runs, out, thresholds=thresholds, shape=shape)
    say(", ".join(f"{count:,} {table}" for table, count in rows.items()) + f" in {out}.")
