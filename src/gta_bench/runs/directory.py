"""The files in a run's folder: where they are, how they are read, and what is damaged."""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote
from zipfile import BadZipFile

from pydantic import ValidationError
from zstandard import ZstdError

from gta_bench.errors import RunError, format_count
from gta_bench.metrics.run_scores import NOT_RUN
from gta_bench.packages import require_packages
from gta_bench.records.base import Record
from gta_bench.records.cost import Cost
from gta_bench.records.gate import GATE_NOTE, GatePlan
from gta_bench.records.judges import Floors
from gta_bench.records.progress import (
    Command,
    RunProgress,
    ShardProgress,
    total_cost,
    total_progress,
)
from gta_bench.records.run import CODE, RunManifest, show_setting
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import TaskScore, WorkflowScores
from gta_bench.redaction import current_redactor
from gta_bench.runs.store import (
    LOCK,
    StorePath,
    lock_folder,
    sort_by_name,
    store_path,
    write_bytes_atomically,
)

MANIFEST = "run.json"
SCORES = "scores.json"
FLOOR = "floor.json"
GATE = "gate.json"
NULLS = "floor"
LOGS = "logs"
# The folder with the rows of a long run, and the tables in it.
RESULTS, UNITS, FAILURES = "results", "units", "failures"
FILES = "files"
ROUNDS = "rounds"
# The packages whose versions decide how the files of a run look.
WRITERS = ("gta-bench", "inspect_ai")
# A log is at most this deep in its run: `logs/<name>.shards/<number>/`.
_DEPTH = 6
# What the formats themselves raise for damage: the archive, its compression, JSON.
_DAMAGE = (
    BadZipFile,
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,
    ZstdError,
    json.JSONDecodeError,
    zlib.error,
)
# What reading an intact archive or text raises if its content is not as expected.
_OTHER_FORM = (KeyError, ValueError)

RecordT = TypeVar("RecordT", bound=Record)
AnyPath = TypeVar("AnyPath", Path, StorePath)


def log_folder(run: AnyPath) -> AnyPath:
    """Return the folder of the run's Inspect logs."""
    return run / LOGS


def files_folder(run: Path) -> Path:
    """Return the folder of the tasks' workspaces, with their deliverables."""
    return run / FILES


def round_folder(run: AnyPath, number: int) -> AnyPath:
    """Return the folder of a round: the first is the run itself, a later one is a run inside it."""
    return run if number == 1 else run / ROUNDS / str(number)


def null_folder(run: StorePath, system: str) -> StorePath:
    """Return the folder of a system that does nothing: a run inside the run whose tasks it has."""
    return run / NULLS / system


def read_manifest(run: StorePath) -> RunManifest:
    """Read `run.json`: the run's spec, dataset, prompts and package versions."""
    file = run / MANIFEST
    if not file.is_file():
        raise RunError(
            f"{run} is not a run: it has no {MANIFEST}. Create runs with `gta run` or `gta import`."
        )
    try:
        return RunManifest.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        fields = format_count(exc.error_count(), "field")
        hint = "Restore it from a copy." if is_broken_json(exc) else explain_versions(file)
        raise RunError(f"{file}: {fields} cannot be read. {hint}") from exc


def find_run(run: StorePath, manifest: RunManifest) -> RunManifest | None:
    """Return the manifest of the run that would be continued; None if a new one would begin.

    Raises if the folder cannot be used for this run. Writes nothing.
    """
    if (run / MANIFEST).is_file():
        kept = read_manifest(run)
        found = kept.difference(manifest)
        if found is not None and found.name.startswith(CODE):
            name = found.name.removeprefix(CODE)
            raise RunError(
                f"{run} was run with other code: {name!r} has changed since, by an edit or by the "
                f"run itself. Use another folder for the new code, or restore {name!r} to "
                "continue. If the agent keeps a cache or a counter, create both in a function that "
                "you call for each run."
            )
        if found is not None and found.name == "server_pins":
            raise RunError(
                f"{run} was run with other tools: {'; '.join(kept.spec.drift(manifest.spec))}. "
                "Restore the tool server to continue the run, or choose another --out."
            )
        if found is not None:
            mine, other = show_setting(found.mine), show_setting(found.other)
            raise RunError(
                f"{run} contains a run with another setting ({found.name}: {mine} there, {other} "
                "here). Choose another --out."
            )
        return kept
    if unquote(str(run)) != str(run):
        raise RunError(f"{run}: Inspect decodes % in paths. Choose another --out.")
    # A gate writes its plan before its run begins.
    if run.exists() and any(file.name not in (GATE, LOCK) for file in run.iterdir()):
        raise RunError(f"{run} is not empty and is not a run. Choose another --out.")
    return None


def open_run(run: StorePath, manifest: RunManifest) -> RunManifest:
    """Begin a run, or continue and extend the existing one; return the manifest of the whole run.

    The folder of a different run is not touched.
    """
    kept = find_run(run, manifest)
    if kept is None:
        run.mkdir(parents=True, exist_ok=True)
        write_manifest(run, manifest)
        return manifest
    if kept.extend(manifest) is kept:
        return kept
    with lock_folder(run):
        grown = read_manifest(run).extend(manifest)
        write_manifest(run, grown)
    return grown


def write_manifest(run: StorePath, manifest: RunManifest) -> None:
    """Write `run.json`."""
    write_record(run / MANIFEST, manifest)


def write_scores(run: StorePath, scores: RunScores | WorkflowScores) -> None:
    """Write `scores.json`."""
    write_record(run / SCORES, scores)


def read_scores(run: StorePath) -> RunScores:
    """Read the scores of an Atomic run; `gta score` writes them.

    The units and failures of a long run are read from `results/` whenever they are iterated.
    """
    scores = _read_scores(run, RunScores)
    if scores.units or not (run / RESULTS).is_dir():
        return scores
    require_packages(f"Reading {run}", "duckdb", extra="report")
    from gta_bench.runs.tables import StoredFailures, StoredUnits

    units = StoredUnits(run / RESULTS / UNITS)
    units.require(scores.n, "strict_answer_total")
    failures = StoredFailures(run / RESULTS / FAILURES)
    return scores.model_copy(update={"units": units, "failures": failures})


def read_workflow_scores(run: StorePath) -> WorkflowScores:
    """Read the scores of a Workflow run; `gta score` writes them.

    The tasks and failures of a long run are read from `results/` whenever they are iterated.
    """
    scores = _read_scores(run, WorkflowScores)
    if any(judge.tasks for judge in scores.judges) or not (run / RESULTS).is_dir():
        return scores
    require_packages(f"Reading {run}", "duckdb", extra="report")
    from gta_bench.runs.tables import StoredFailures, StoredRows

    not_run = sum(unit.cause == NOT_RUN for unit in scores.unscored)
    judges = []
    for judge in scores.judges:
        own = {"judge": judge.judge}
        tasks = StoredRows(run / RESULTS / UNITS, TaskScore, own)
        tasks.require(judge.strict.n_units - not_run, "scored")
        failures = StoredFailures(run / RESULTS / FAILURES, own)
        judges.append(judge.model_copy(update={"tasks": tasks, "failures": failures}))
    return scores.model_copy(update={"judges": tuple(judges)})


def _read_scores(run: StorePath, kind: type[RecordT]) -> RecordT:
    if not (run / SCORES).is_file():
        raise RunError(
            f"{run} has no scores yet: run `gta score {run}` (GTA-Workflow: with --judge MODEL)."
        )
    return read_record(run / SCORES, kind, f"Run `gta score {run}` again.")


def write_floors(run: StorePath, floors: Floors) -> None:
    """Write the scores that judges gave to systems that do nothing."""
    write_record(run / FLOOR, floors)


def read_floors(run: StorePath) -> Floors:
    """Read the scores that judges gave to systems that do nothing; empty if none was asked."""
    if not (run / FLOOR).is_file():
        return Floors()
    return read_record(run / FLOOR, Floors, f"Run `gta judge floor {run}` again.")


def write_gate_plan(run: StorePath, plan: GatePlan) -> None:
    """Write what a gate decides about a run, and in which order it runs the tasks."""
    write_record(run / GATE, plan)


def read_gate_plan(run: StorePath) -> GatePlan | None:
    """Read what a gate decides about a run; None if the run was not begun by a gate."""
    if (run / GATE).is_file():
        return read_record(run / GATE, GatePlan)
    if (run / MANIFEST).is_file() and GATE_NOTE in read_manifest(run).notes:
        raise RunError(
            f"{run / GATE} is missing, without which nobody knows how far this run had to go. "
            "Restore it from a copy, or run the tasks in another folder."
        )
    return None


def read_record(
    file: StorePath, kind: type[RecordT], hint: str = "Restore it from a copy."
) -> RecordT:
    """Read a record from a JSON file; `hint` tells what to do if it cannot be read."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        fields, first = format_count(exc.error_count(), "field"), exc.errors()[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        why = " ".join(f"{where}: {first['msg']}".split())[:200]
        raise RunError(f"{file}: {fields} cannot be read ({why}). {hint}") from exc


def write_record(file: StorePath, record: Record) -> None:
    """Write a record to a JSON file atomically, without secrets."""
    data = current_redactor().json(record.model_dump_json(indent=2).encode())
    write_bytes_atomically(file, data + b"\n")


@contextmanager
def explain_unreadable(log: str) -> Iterator[None]:
    """Raise RunError if a log is damaged, or intact but written by another version.

    Only a damaged log may be removed: an intact one can be read by the versions that wrote it.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (*_DAMAGE, *_OTHER_FORM) as exc:
        if isinstance(exc, _DAMAGE) or is_broken_json(exc):
            raise RunError(
                f"The log {log} is damaged ({_describe(exc)}). All other logs of the run are "
                "intact. Restore it from a copy, or remove it and run the same command again: "
                "only its units are run again."
            ) from exc
        raise RunError(
            f"The log {log} has an unknown form ({_describe(exc)}). "
            f"{explain_versions(store_path(log))}"
        ) from exc


def is_broken_json(exc: Exception) -> bool:
    """Whether a record could not be read because the text is not JSON."""
    return isinstance(exc, ValidationError) and exc.errors()[0]["type"] == "json_invalid"


def explain_versions(file: StorePath) -> str:
    """Say which versions wrote a file of a run, which are installed, and what to do."""
    here = {name: version(name) for name in WRITERS}
    wrote = _list_versions(_find_writers(file))
    return (
        f"It is not damaged: do not remove it. It was written by {wrote or 'unknown versions'}; "
        f"installed are {_list_versions(here)}. Use the versions that wrote it, or newer ones."
    )


def _describe(exc: Exception) -> str:
    if isinstance(exc, ValidationError) and not is_broken_json(exc):
        first = exc.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        return f"{exc.title}: {field}: {first['msg']}"
    return f"{type(exc).__name__}: {(str(exc).splitlines() or [''])[0][:120]}"


def _list_versions(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {packages[name]}" for name in WRITERS if name in packages)


def _find_writers(file: StorePath) -> Mapping[str, str]:
    """Return the packages in the nearest `run.json`, whichever version wrote that."""
    folder = file.parent
    for _ in range(_DEPTH):
        if (folder / MANIFEST).is_file():
            try:
                found = json.loads((folder / MANIFEST).read_bytes())["packages"]
                return {str(name): str(one) for name, one in found.items()}
            except (AttributeError, KeyError, TypeError, ValueError):
                return {}
        folder = folder.parent
    return {}


PROGRESS = "progress"
COMMAND = "command.json"


def progress_folder(run: StorePath, judge: str | None = None) -> StorePath:
    """Return the folder with the progress of the newest command that runs units, or asks a judge.

    Each judge has its own, so that several commands may ask different judges at once.
    """
    return run / PROGRESS if judge is None else run / PROGRESS / judge_folder_name(judge)


def judge_folder_name(judge: str) -> str:
    """Return the name of a judge's folders; names that clean to the same text stay distinct."""
    clean = re.sub(r"[^A-Za-z0-9.-]+", "-", judge).strip("-.")
    return f"{clean}-{sha256(judge.encode()).hexdigest()[:8]}"


def list_progress(run: StorePath) -> list[StorePath]:
    """List the folders with the progress of a command: the run's own, then those of judges."""
    own = progress_folder(run)
    found = [own] if (own / COMMAND).is_file() else []
    return found + [file.parent for file in sort_by_name(own.glob(f"*/{COMMAND}"))]


def begin_progress(folder: StorePath, command: Command) -> None:
    """Begin a new command; of earlier ones, only the counts of how replies ended are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    before = read_progress(folder)
    stops = {} if before is None else before.stops
    write_record(folder / COMMAND, command.model_copy(update={"stops": stops}))
    for file in folder.glob("shard-*.json"):
        with suppress(FileNotFoundError):  # another command is beginning, too
            file.unlink()


def read_spent(folder: StorePath) -> Cost:
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
    """Read the latest progress of every shard; none is from the future, whatever clock it had."""
    found, now = [], datetime.now(UTC)
    for file in sort_by_name(folder.glob("shard-*.json")):
        with suppress(FileNotFoundError):  # a new command is beginning
            one = ShardProgress.model_validate_json(file.read_bytes())
            found.append(one.model_copy(update={"updated": min(one.updated, now)}))
    return found
