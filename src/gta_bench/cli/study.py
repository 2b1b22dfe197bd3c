"""`gta study`: a design of systems x tasks x epochs, with questions that are written down first."""

import json
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from gta_bench.cli.options import FILE, NEW_FILE, backend_options, json_option, preflight_option
from gta_bench.cli.output import write_json, write_table
from gta_bench.packages import require_packages
from gta_bench.redaction import current_redactor


@click.group(help="Plan, run and report a study: systems x tasks x epochs, with questions first.")
def study() -> None:
    """Group of the three commands."""
    require_packages("gta study", "scipy", extra="report")


@study.command("plan")
@click.argument("file", type=FILE)
@json_option
def plan_command(file: Path, as_json: bool) -> None:
    """Print units, cost, hours, and the smallest difference that each question can show.

    FILE is a TOML file with `out`, `seed`, `epochs` and `block`; tables [datasets.NAME],
    [models.NAME] and [agents.NAME] with options of `gta run`; [budget]; [assume]; [[questions]].
    docs/how-to/studies.md has an example. Nothing is sent and nothing is written.
    """
    from gta_bench.cli.study_run import plan_cells
    from gta_bench.decisions.study_file import read_study
    from gta_bench.decisions.study_plan import plan_study
    from gta_bench.decisions.study_tables import describe_plan, plan_tables
    from gta_bench.runs.scoring import read_compared
    from gta_bench.runs.store import store_path

    read = read_study(file)
    planned = plan_cells(read)
    pilot = [read_compared(store_path(run)) for run in read.file.assume.pilot]
    found = plan_study(read, planned.blocks, planned.modes, pilot)
    if as_json:
        write_json(json.loads(found.model_dump_json()))  # without a number: null
        return
    for title, table in plan_tables(found):
        click.echo(f"{title}:")
        write_table(table, (0, 1) if title == "Runs" else (0, 1, 5))
        click.echo()
    for line in describe_plan(found):
        click.echo(line)


@study.command("run")
@click.argument("file", type=FILE)
@click.option(
    "--amend",
    is_flag=True,
    help="Accept that FILE has changed since the study began; every report says what and when.",
)
@preflight_option
@backend_options
def run_command(file: Path, amend: bool, **options: Any) -> None:
    """Work through the runs of a study, block by block, until it is done or the budget is spent.

    Every system finishes a block of tasks before the next block begins, so that the design is
    balanced whenever it stops. The same command continues; nothing finished is done twice. Exits
    with 1 if something remains.
    """
    from gta_bench.cli.study_run import run_study
    from gta_bench.decisions.study_file import read_study

    complete = run_study(read_study(file), options, amend=amend)
    raise Exit(0 if complete else 1)


@study.command("report")
@click.argument("file", type=FILE)
@json_option
@click.option("--markdown", "page", type=NEW_FILE, help="Also write Markdown to this file.")
def report_command(file: Path, as_json: bool, page: Path | None) -> None:
    """Answer the questions of a study, from its complete blocks.

    Each answer has a 95 % interval over tasks and a p value with Holm's correction for all
    questions. Also prints where the variance of a score comes from, what the error of each answer
    is from, and what was not scored and why. The runs themselves: `gta report`, `gta compare`.
    """
    from gta_bench.cli.study_run import read_result
    from gta_bench.decisions.study_file import read_study
    from gta_bench.decisions.study_tables import (
        describe_result,
        format_study_markdown,
        result_tables,
    )
    from gta_bench.runs.store import write_bytes_atomically

    found = read_result(read_study(file))
    if page is not None:
        data = current_redactor().data(format_study_markdown(found).encode())
        write_bytes_atomically(page, data)
    if as_json:
        write_json(json.loads(found.model_dump_json()))  # without a number: null
        return
    for title, table, words in result_tables(found):
        click.echo(f"{title}:")
        write_table(table, words)
        click.echo()
    for line in describe_result(found):
        click.echo(line)
