"""Stored Workflow runs, made by hand."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from gta_bench.records.deliverables import Deliverable
from gta_bench.records.run import RunManifest, System, WorkflowUnit
from gta_bench.records.steps import AnswerStep
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import open_run
from gta_bench.runs.imported import write_imported_workflow


def stored_run(
    folder: Path,
    tasks: Sequence[WorkflowTask],
    files: Mapping[str, bytes],
    answer: str = "Done.",
) -> Path:
    """A run in which every task was answered with the same files."""
    store = ArtefactStore(folder / ARTEFACTS)
    manifest = RunManifest(
        created=datetime(2026, 1, 1, tzinfo=UTC),
        dataset="workflow",
        dataset_digest="d",
        mode="workflow",
        system=System(model="some/model", agent="toolcalling"),
        tasks=tuple(task.id for task in tasks),
    )
    open_run(folder, manifest)
    made = tuple(
        Deliverable(path=f"outputs/{name}", digest=store.keep(data), size=len(data))
        for name, data in files.items()
    )
    units = [
        WorkflowUnit(task=task, trace=(AnswerStep(content=answer),), deliverables=made)
        for task in tasks
    ]
    write_imported_workflow(folder, manifest, units)
    return folder


def settings_file(folder: Path, url: str, model: str = "m", **judge: object) -> Path:
    """A gta.toml whose model `local` is the server at `url`."""
    lines = [f"{name} = {str(value).lower()}" for name, value in judge.items()]
    file = folder / "gta.toml"
    file.write_text(
        f'[models.local]\nmodel = "openai-api/local/{model}"\nbase_url = "{url}"\n'
        'key_env = "GTA_TEST_KEY_A"\nmax_tokens = 300\n'
        "[budget]\nmax_retries = 0\nmax_connections = 4\n[judge]\n" + "\n".join(lines) + "\n",
        encoding="utf-8",
    )
    return file
