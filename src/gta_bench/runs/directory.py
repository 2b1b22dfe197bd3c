"""Where a run's files lie, and how its manifest is kept."""

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.base import Record
from gta_bench.records.run import RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import WorkflowScores

MANIFEST = "run.json"
SCORES = "scores.json"
LOGS = "logs"
FILES = "files"
ROUNDS = "rounds"

Scores = TypeVar("Scores", bound=Record)


def log_folder(run: Path) -> Path:
    """Where the evaluation engine keeps the run's logs."""
    return run / LOGS


def files_folder(run: Path) -> Path:
    """Where each task's workspace lies, with its deliverables."""
    return run / FILES


def round_folder(run: Path, number: int) -> Path:
    """Where a round lies: the first is the run itself, a later one is a run inside it."""
    return run if number == 1 else run / ROUNDS / str(number)


def read_manifest(run: Path) -> RunManifest:
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
        raise RunError(f"{file}: {exc.error_count()} fields cannot be read.") from exc


def open_run(run: Path, manifest: RunManifest) -> RunManifest:
    """Begin a run, or continue the one that is there; another run's folder is not touched."""
    if (run / MANIFEST).is_file():
        kept = read_manifest(run)
        difference = kept.difference(manifest)
        if difference is not None:
            raise RunError(
                f"{run} holds a run with another setting ({difference}); name another --out."
            )
        return kept
    if run.exists() and any(run.iterdir()):
        raise RunError(f"{run} is not empty and is not a run; name another --out.")
    run.mkdir(parents=True, exist_ok=True)
    write_manifest(run, manifest)
    return manifest


def write_manifest(run: Path, manifest: RunManifest) -> None:
    """Keep what holds for the run."""
    _write(run / MANIFEST, manifest.model_dump_json(indent=2))


def write_scores(run: Path, scores: RunScores | WorkflowScores) -> None:
    """Keep the run's scores."""
    _write(run / SCORES, scores.model_dump_json(indent=2))


def read_scores(run: Path) -> RunScores:
    """The scores of an Atomic run; `gta score` makes them."""
    return _read_scores(run, RunScores)


def read_workflow_scores(run: Path) -> WorkflowScores:
    """The scores of a Workflow run; `gta score` makes them."""
    return _read_scores(run, WorkflowScores)


def _read_scores(run: Path, kind: type[Scores]) -> Scores:
    file = run / SCORES
    if not file.is_file():
        raise RunError(f"{run} has no scores yet: run `gta score {run}`.")
    try:
        return kind.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise RunError(f"{file} cannot be read; run `gta score {run}` again.") from exc


def _write(file: Path, text: str) -> None:
    """All or nothing: a reader never sees half a file."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(file)
