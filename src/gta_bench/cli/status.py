"""`gta status`: the progress of a run, while another terminal or a cluster works on it."""

from pathlib import Path

import click

from gta_bench.cli.options import FOLDER, json_option
from gta_bench.cli.output import describe_causes, describe_progress, write_json, write_rows
from gta_bench.errors import format_count
from gta_bench.records.progress import Command, RunProgress
from gta_bench.reports.summary import stop_counts
from gta_bench.runs.directory import (
    list_progress,
    log_folder,
    progress_folder,
    read_command,
    read_manifest,
    read_progress,
    read_shards,
)
from gta_bench.runs.store import StorePath, is_locked


@click.command()
@click.argument("run", type=FOLDER)
@json_option
def status(run: Path, as_json: bool) -> None:
    """Show the progress of RUN: units finished, failed and why, running, rate, time left, cost."""
    folder, live = _find_progress(run)
    progress, command = _read_progress(run, folder, read_manifest(run).spec.units, live=live)
    state = "running" if live else "complete" if progress.done == progress.units else "stopped"
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
            ("now", " · ".join(describe_progress(progress, most_causes=0)) if live else "idle"),
            *(("cause", words) for words in describe_causes(progress.causes)),
            *([("replies", stop_counts(progress.stops))] if progress.stops else []),
            ("work", _describe_work(run, command)),
        ]
    )


def _find_progress(run: Path) -> tuple[StorePath, bool]:
    """Return the progress of the newest command, and whether it works now; one that does wins."""
    own = progress_folder(run)
    found: list[tuple[bool, float, StorePath]] = []
    for folder in list_progress(run):
        command = read_command(folder)
        if command is not None:
            live = is_locked(run if folder == own else folder)
            found.append((live, command.started.timestamp(), folder))
    live, _, folder = max(found, default=(is_locked(run), 0.0, own), key=lambda one: one[:2])
    return folder, live


def _read_progress(
    run: Path, folder: StorePath, units: int, *, live: bool
) -> tuple[RunProgress, Command]:
    """Return what that command reports, or count the logs if it may have died."""
    command, progress = read_command(folder), read_progress(folder)
    ended = progress is not None and progress.done == progress.units
    if command is not None and progress is not None and (live or ended or command.judge):
        return progress, command
    # Reading logs needs the evaluation engine.
    from gta_bench.runs.logs import count_finished

    created = read_manifest(run).created
    done = count_finished(log_folder(run))
    command = command or Command(started=created, units=units, finished=done)
    progress = progress or RunProgress(units=units, done=done, started=created, updated=created)
    return progress.model_copy(update={"done": done, "running": 0}), command


def _describe_work(run: Path, command: Command) -> str:
    places = f"{command.backend}, {command.places} at once"
    if command.places == 1:
        return places
    leases = format_count(len(read_shards(progress_folder(run))), "lease")
    return f"{places}; {leases} by this command"
