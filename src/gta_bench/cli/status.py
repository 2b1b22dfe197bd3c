"""`gta status`: the progress of a run, while another terminal or a cluster works on it."""

from pathlib import Path

import click

from gta_bench.cli.options import FOLDER, json_option
from gta_bench.cli.output import describe_causes, describe_progress, write_json, write_rows
from gta_bench.errors import format_count
from gta_bench.records.progress import Command
from gta_bench.reports.summary import stop_counts
from gta_bench.runs.directory import progress_folder, read_shards
from gta_bench.runs.status import read_status


@click.command()
@click.argument("run", type=FOLDER)
@json_option
def status(run: Path, as_json: bool) -> None:
    """Show the progress of RUN: units finished, failed and why, running, rate, time left, cost."""
    state, progress, command = read_status(run)
    if as_json:
        left = progress.left
        write_json(
            {
                "state": state,
                "judge": command.judge,
                "backend": command.backend,
                "places": command.places,
                **progress.model_dump(mode="json", exclude={"stopped", "needed_usd"}),
                "units_a_minute": progress.rate,
                "seconds_left": None if left is None else left.total_seconds(),
            }
        )
        return
    what = "units" if command.judge is None else f"units judged by {command.judge}"
    write_rows(
        [
            (
                "state",
                f"{state}: run the same command to continue" if state == "stopped" else state,
            ),
            ("finished", f"{progress.done} of {progress.units} {what}"),
            (
                "now",
                " · ".join(describe_progress(progress, most_causes=0))
                if state == "running"
                else "idle",
            ),
            *(("cause", words) for words in describe_causes(progress.causes)),
            *([("replies", stop_counts(progress.stops))] if progress.stops else []),
            ("work", _describe_work(run, command)),
        ]
    )


def _describe_work(run: Path, command: Command) -> str:
    places = f"{command.backend}, {command.places} at once"
    if command.places == 1:
        return places
    leases = format_count(len(read_shards(progress_folder(run))), "lease")
    return f"{places}; {leases} by this command"
