"""`gta status`: how far a run is, while another terminal or a cluster works on it."""

from pathlib import Path

import click

from gta_bench.cli.options import json_option
from gta_bench.cli.output import cause_words, progress_words, write_json, write_rows
from gta_bench.records.progress import Command, RunProgress
from gta_bench.reports.summary import stop_counts
from gta_bench.runs.directory import (
    log_folder,
    progress_folder,
    read_command,
    read_manifest,
    read_progress,
    read_shards,
)
from gta_bench.runs.merge import read_plan, shards_folder
from gta_bench.runs.store import is_locked


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@json_option
def status(run: str, as_json: bool) -> None:
    """How far RUN is: units finished, failed and why, running, rate, time left, cost."""
    folder = Path(run)
    manifest = read_manifest(folder)
    live = is_locked(folder)
    progress, command = _progress(folder, manifest.spec.units, live=live)
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
    what = "units" if command.judge is None else f"units before {command.judge}"
    write_rows(
        [
            ("state", _state_words(state)),
            ("finished", f"{progress.done} of {progress.units} {what}"),
            (
                "now",
                " · ".join(progress_words(progress, most_causes=0)) if live else "nothing runs",
            ),
            *(("cause", words) for words in cause_words(progress.causes)),
            *([("replies", stop_counts(progress.stops))] if progress.stops else []),
            ("work", f"{command.backend}, {command.places} at once{_shard_words(folder)}"),
        ]
    )


def _progress(run: Path, units: int, *, live: bool) -> tuple[RunProgress, Command]:
    """What the newest command says; where none works, its logs are counted: it may have died."""
    folder = progress_folder(run)
    command, progress = read_command(folder), read_progress(folder)
    ended = progress is not None and progress.done == progress.units
    if command is not None and progress is not None and (live or ended or command.judge):
        return progress, command
    # Reading logs needs the evaluation engine.
    from gta_bench.runs.logs import finished_units

    created = read_manifest(run).created
    done = finished_units(log_folder(run))
    command = command or Command(started=created, units=units, finished=done)
    progress = progress or RunProgress(units=units, done=done, started=created, updated=created)
    return progress.model_copy(update={"done": done, "running": 0}), command


def _state_words(state: str) -> str:
    if state == "stopped":
        return "stopped: the same command goes on where it ended"
    return state


def _shard_words(run: Path) -> str:
    plan = read_plan(run)
    if plan is None:
        return ""
    count = len(plan.shards)
    if not shards_folder(run, plan).is_dir():
        return f"; {count} shards, merged to one log"
    begun = len(read_shards(progress_folder(run)))
    return f"; {count} shards, {begun} begun by this command"
