"""The progress of a run, in small files that every shard rewrites and anyone may read."""

from contextlib import suppress

from pydantic import ValidationError

from gta_bench.records.cost import Cost
from gta_bench.records.progress import (
    Command,
    RunProgress,
    ShardProgress,
    total_cost,
    total_progress,
)
from gta_bench.runs.directory import write_record
from gta_bench.runs.store import StorePath, sorted_by_name

PROGRESS = "progress"
COMMAND = "command.json"


def progress_folder(run: StorePath) -> StorePath:
    """Return the folder with the progress of the newest command on a run."""
    return run / PROGRESS


def begin_progress(folder: StorePath, command: Command) -> None:
    """Begin a new command; of earlier ones, only the counts of how replies ended are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    before = read_progress(folder)
    stops = {} if before is None else before.stops
    write_record(folder / COMMAND, command.model_copy(update={"stops": stops}))
    for file in folder.glob("shard-*.json"):
        with suppress(FileNotFoundError):  # another command is beginning, too
            file.unlink()


def spent_before(folder: StorePath) -> Cost:
    """Return what the run had cost when its last command ended, with all failed attempts."""
    command = read_command(folder)
    if command is None or command.judge is not None:
        return Cost()
    return total_cost(command, read_shards(folder))


def write_progress(folder: StorePath, progress: ShardProgress) -> None:
    """Write the progress of a shard."""
    write_record(folder / f"shard-{progress.shard}.json", progress)


def read_shard_progress(folder: StorePath, shard: str, command: Command) -> ShardProgress:
    """Read where a shard continues; what a killed attempt did for this command still counts."""
    try:
        found = ShardProgress.model_validate_json((folder / f"shard-{shard}.json").read_bytes())
    except (FileNotFoundError, ValidationError):
        found = None
    if found is None or found.command != command.started:
        return ShardProgress(shard=shard, command=command.started, updated=command.started)
    return found.model_copy(update={"failed": 0, "running": 0, "causes": {}})


def read_progress(folder: StorePath) -> RunProgress | None:
    """Read the sum over all shards; None if no command has begun."""
    command = read_command(folder)
    if command is None:
        return None
    return total_progress(command, read_shards(folder))


def read_command(folder: StorePath) -> Command | None:
    """Read what the newest command set out to do."""
    file = folder / COMMAND
    return Command.model_validate_json(file.read_bytes()) if file.is_file() else None


def read_shards(folder: StorePath) -> list[ShardProgress]:
    """Read the latest progress of every shard."""
    found = []
    for file in sorted_by_name(folder.glob("shard-*.json")):
        with suppress(FileNotFoundError):  # a new command is beginning
            found.append(ShardProgress.model_validate_json(file.read_bytes()))
    return found
