"""What a run is doing now: the progress of its newest command, also after that command has died."""

from typing import Literal, NamedTuple

from gta_bench.errors import RunError
from gta_bench.records.progress import Command, RunProgress
from gta_bench.runs.directory import (
    SCORES,
    list_progress,
    log_folder,
    progress_folder,
    read_command,
    read_manifest,
    read_progress,
)
from gta_bench.runs.store import StorePath, is_locked

RunState = Literal["running", "complete", "stopped"]


class RunStatus(NamedTuple):
    """The newest command on a run, with its progress; a run is `stopped` if units are missing."""

    state: RunState
    progress: RunProgress
    command: Command


class NewestCommand(NamedTuple):
    """The folder with the progress of the newest command, and whether that works now."""

    folder: StorePath
    live: bool


def find_newest_command(run: StorePath) -> NewestCommand:
    """Find the newest command on a run; one that works now wins."""
    own = progress_folder(run)
    found: list[tuple[bool, float, StorePath]] = []
    for folder in list_progress(run):
        command = read_command(folder)
        if command is not None:
            live = is_locked(run if folder == own else folder)
            found.append((live, command.started.timestamp(), folder))
    live, _, folder = max(found, default=(is_locked(run), 0.0, own), key=lambda one: one[:2])
    return NewestCommand(folder, live)


def read_status(run: StorePath) -> RunStatus:
    """Read the status of a run; counts the logs if its newest command may have died."""
    folder, live = find_newest_command(run)
    command, progress = read_command(folder), read_progress(folder)
    ended = progress is not None and progress.done == progress.units
    if command is None or progress is None or not (live or ended or command.judge):
        progress, command = _count_logs(run, command, progress)
    state: RunState = "complete" if progress.done == progress.units else "stopped"
    return RunStatus("running" if live else state, progress, command)


def require_scores(run: StorePath) -> None:
    """Raise RunError if a run has no scores, which says what it needs: its end, or scoring."""
    if (run / SCORES).is_file():
        return
    state, progress, command = read_status(run)
    what = "units" if command.judge is None else f"units judged by {command.judge}"
    done = f"{progress.done} of {progress.units} {what}"
    if state == "running":
        raise RunError(
            f"{run} has no scores yet: it is still running, {done} are finished. "
            f"`gta status {run}` shows its progress."
        )
    if state == "stopped":
        raise RunError(
            f"{run} has no scores yet: it stopped with {done}. Run the same command to continue, "
            f"or score what there is with `gta score {run}`."
        )


def _count_logs(
    run: StorePath, command: Command | None, progress: RunProgress | None
) -> tuple[RunProgress, Command]:
    # Reading logs needs the evaluation engine.
    from gta_bench.runs.logs import count_finished

    manifest = read_manifest(run)
    units, created = manifest.spec.units, manifest.created
    done = count_finished(log_folder(run))
    command = command or Command(started=created, units=units, finished=done)
    progress = progress or RunProgress(units=units, done=done, started=created, updated=created)
    return progress.model_copy(update={"done": done, "running": 0}), command
