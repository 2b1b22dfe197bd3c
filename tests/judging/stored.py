"""Stored Workflow runs, made by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gta_bench.records.files import Deliverable
from gta_bench.records.run import System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import open_run
from gta_bench.runs.imported import write_imported
from tests.builders import manifest as build_manifest


def stored_run(
    folder: Path,
    tasks: Sequence[WorkflowTask],
    files: Mapping[str, bytes],
    answer: str = "Done.",
) -> Path:
    """A run in which every task was answered with the same files."""
    store = ArtefactStore(folder / ARTEFACTS)
    manifest = build_manifest(
        dataset="workflow",
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
    write_imported(folder, manifest, units)
    return folder


def settings_file(
    folder: Path,
    url: str,
    model: str = "m",
    budget: Mapping[str, float] | None = None,
    max_tokens: int = 200,
    price: float | None = None,
    **judge: object,
) -> Path:
    """A gta.toml whose model `local` is the server at `url`."""
    file = folder / "gta.toml"
    prices = "" if price is None else f"input_price = {price}\noutput_price = {price}\n"
    limits = {"max_retries": 0, "max_connections": 4, **(budget or {})}
    file.write_text(
        f'[models.local]\nmodel = "openai-api/local/{model}"\nbase_url = "{url}"\n'
        f'key_env = "GTA_TEST_KEY_A"\nmax_tokens = {max_tokens}\n{prices}'
        + _table("budget", limits)
        + _table("judge", judge),
        encoding="utf-8",
    )
    return file


def _table(name: str, values: Mapping[str, object]) -> str:
    return "\n".join(
        [f"[{name}]", *(f"{key} = {str(value).lower()}" for key, value in values.items()), ""]
    )
