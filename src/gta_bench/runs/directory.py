"""Where a run's files lie, and how its manifest is kept."""

from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from pydantic import ValidationError

from gta_bench.errors import RunError, counted
from gta_bench.records.base import Record
from gta_bench.records.judges import Floors
from gta_bench.records.run import RunManifest, show_setting
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.redaction import current_redactor
from gta_bench.runs.lock import locked
from gta_bench.runs.store import StorePath, write_whole
from gta_bench.runs.unreadable import explain_versions, is_broken_json

MANIFEST = "run.json"
SCORES = "scores.json"
FLOOR = "floor.json"
NULLS = "floor"
LOGS = "logs"
FILES = "files"
ROUNDS = "rounds"

ScoresRecord = TypeVar("ScoresRecord", bound=Record)
AnyPath = TypeVar("AnyPath", Path, StorePath)


def log_folder(run: AnyPath) -> AnyPath:
    """Where the evaluation engine keeps the run's logs."""
    return run / LOGS


def files_folder(run: Path) -> Path:
    """Where each task's workspace lies, with its deliverables."""
    return run / FILES


def round_folder(run: AnyPath, number: int) -> AnyPath:
    """Where a round lies: the first is the run itself, a later one is a run inside it."""
    return run if number == 1 else run / ROUNDS / str(number)


def read_manifest(run: StorePath) -> RunManifest:
    """What held while the run was made."""
    file = run / MANIFEST
    if not file.is_file():
        raise RunError(
            f"{run} is not a run: there is no {MANIFEST} in it. `gta run` and `gta import` "
            "make runs."
        )
    try:
        return RunManifest.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        problem = f"{file}: {counted(exc.error_count(), 'field')} cannot be read."
        told = "" if is_broken_json(exc) else f" {explain_versions(file)}"
        raise RunError(f"{problem}{told}") from exc


def find_run(run: StorePath, manifest: RunManifest) -> RunManifest | None:
    """The run that is there and would be continued, None where one would begin; writes nothing."""
    if (run / MANIFEST).is_file():
        kept = read_manifest(run)
        _check_same(run, kept, manifest)
        return kept
    if unquote(str(run)) != str(run):
        raise RunError(f"{run}: the engine reads % as part of an address; name another --out.")
    if run.exists() and any(run.iterdir()):
        raise RunError(f"{run} is not empty and is not a run; name another --out.")
    return None


def open_run(run: StorePath, manifest: RunManifest) -> RunManifest:
    """Begin a run, or continue and extend the one that is there.

    Returns the manifest of the whole run. Another run's folder is not touched.
    """
    kept = find_run(run, manifest)
    if kept is not None:
        return _extend(run, kept, manifest)
    run.mkdir(parents=True, exist_ok=True)
    write_manifest(run, manifest)
    return manifest


def _check_same(run: StorePath, kept: RunManifest, wanted: RunManifest) -> None:
    found = kept.difference(wanted)
    if found is not None:
        mine, other = show_setting(found.mine), show_setting(found.other)
        raise RunError(
            f"{run} holds a run with another setting ({found.name}: {mine} there, {other} here); "
            "name another --out."
        )


def _extend(run: StorePath, kept: RunManifest, wanted: RunManifest) -> RunManifest:
    if kept.extend(wanted) is kept:
        return kept
    with locked(run):
        grown = read_manifest(run).extend(wanted)
        write_manifest(run, grown)
    return grown


def write_manifest(run: StorePath, manifest: RunManifest) -> None:
    """Keep what holds for the run."""
    write_record(run / MANIFEST, manifest)


def write_scores(run: StorePath, scores: RunScores | WorkflowScores) -> None:
    """Keep the run's scores."""
    write_record(run / SCORES, scores)


def read_scores(run: StorePath) -> RunScores:
    """The scores of an Atomic run; `gta score` makes them."""
    return _read_scores(run, RunScores)


def read_workflow_scores(run: StorePath) -> WorkflowScores:
    """The scores of a Workflow run; `gta score` makes them."""
    return _read_scores(run, WorkflowScores)


def null_folder(run: StorePath, system: str) -> StorePath:
    """Where a system that does nothing lies: a run inside the run whose tasks it has."""
    return run / NULLS / system


def write_floors(run: StorePath, floors: Floors) -> None:
    """Keep what judges gave to systems that do nothing."""
    write_record(run / FLOOR, floors)


def read_floors(run: StorePath) -> Floors:
    """What judges gave to systems that do nothing; empty where none was asked."""
    file = run / FLOOR
    if not file.is_file():
        return Floors()
    try:
        return Floors.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise RunError(f"{file} cannot be read; run `gta judge floor {run}` again.") from exc


def _read_scores(run: StorePath, kind: type[ScoresRecord]) -> ScoresRecord:
    file = run / SCORES
    if not file.is_file():
        raise RunError(
            f"{run} has no scores yet: run `gta score {run}` (GTA-Workflow: with --judge MODEL)."
        )
    try:
        return kind.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise RunError(f"{file} cannot be read; run `gta score {run}` again.") from exc


def write_record(file: StorePath, record: Record) -> None:
    """All or nothing, and without secrets: a reader never sees half a file."""
    data = current_redactor().json(record.model_dump_json(indent=2).encode())
    write_whole(file, data + b"\n")
