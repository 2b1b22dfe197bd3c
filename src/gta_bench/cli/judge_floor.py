"""`gta judge floor`: what a judge gives to systems that do nothing."""

from pathlib import Path

import click
from pydantic import JsonValue

from gta_bench.cli.options import config_path, json_option, judge_options
from gta_bench.cli.output import unit_bar, write_json, write_table
from gta_bench.judge_quality.judge_runs import measure_floor
from gta_bench.metrics.table import JUDGED
from gta_bench.reports.tables import Table
from gta_bench.reports.workflow_summary import judged_cells
from gta_bench.running.judge_run import plan_judging
from gta_bench.settings import read_settings

HEADING = ("judge", "system", "n/N", *(row.heading for row in JUDGED.values()))


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option("--judge", "judges", multiple=True, required=True, help="The judge to measure.")
@judge_options
@json_option
@click.pass_obj
def floor(
    config_file: str | None,
    /,
    run: str,
    judges: tuple[str, ...],
    as_json: bool,
    **asking: JsonValue,
) -> None:
    """Judge systems that do nothing on the tasks of RUN: the floor under its scores.

    They answer nothing, repeat the requirements, boast, or hand the task's own files back. Their
    rows stand in every report of RUN beside the judge's own.
    """
    overrides = {f"judge.{name}": value for name, value in asking.items()}
    settings = read_settings(config_path(config_file), overrides=overrides).settings
    judging = plan_judging(judges, settings)
    floors = measure_floor(Path(run), judging, unit_bar)
    if as_json:
        write_json([row.model_dump(mode="json") for row in floors.rows])
        return
    rows = tuple(
        (row.judge, row.system, f"{row.n}/{row.n_units}", *judged_cells(row)) for row in floors.rows
    )
    write_table(Table(HEADING, rows), (0, 1))
