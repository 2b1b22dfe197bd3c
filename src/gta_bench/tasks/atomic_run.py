"""A run of GTA-Atomic: its manifest, the evaluation, and its units read back."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from inspect_ai import Task
from inspect_ai.model import Model

from gta_bench.agents.catalog import NEED_REFERENCES, load_agent
from gta_bench.agents.loop import MAX_TURNS
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.product import Product
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.run import OWN_TOOLS, Images, Mode, RunManifest, System
from gta_bench.runs.directory import files_folder, log_folder, open_run
from gta_bench.runs.logs import ReadUnits, read_units
from gta_bench.settings import Settings
from gta_bench.tasks.atomic import atomic
from gta_bench.tasks.atomic_step import atomic_step
from gta_bench.tasks.context import RunContext
from gta_bench.tasks.evaluation import (
    Listener,
    agent_digests,
    described_system,
    evaluate,
    harness_digests,
    package_versions,
    select_tasks,
    tool_digests,
)
from gta_bench.tasks.models import ChosenModel, open_model
from gta_bench.tasks.tooling import PLAIN, Tooling, note_recording, open_tooling


@dataclass(frozen=True)
class AtomicRun:
    """What to run: one system on a selection of GTA-Atomic's tasks."""

    data: Path
    mode: Mode
    model: ChosenModel
    agent: str
    images: Images
    tasks: str | None
    epochs: int
    settings: Settings
    similarity: str
    max_turns: int = MAX_TURNS
    tooling: Tooling = PLAIN
    product: Product | None = None
    harness: Harness | None = None


def plan(run: AtomicRun) -> RunManifest:
    """The manifest of a run that has not begun."""
    if run.harness is None:
        load_agent(run.agent)
    dataset = load_atomic(run.data)
    return RunManifest(
        created=datetime.now(UTC),
        dataset="atomic",
        dataset_digest=dataset_digest(dataset),
        mode=run.mode,
        system=_system(run),
        tasks=select_tasks(dataset.tasks, run.tasks),
        epochs=run.epochs,
        prompts=_prompts(run),
        network=None if run.harness is None else run.harness.network,
        packages=package_versions(),
        similarity=run.similarity,
        **(run.tooling.planned() if run.product is None else {"tools": OWN_TOOLS}),
        notes=_notes(run),
    )


def _system(run: AtomicRun) -> System:
    if run.product is None:
        return described_system(run.model, run.agent, run.images, run.harness)
    from gta_bench.tasks.product import product_system

    return product_system(run.product)


def _prompts(run: AtomicRun) -> dict[str, str]:
    if run.harness is not None:
        return harness_digests() | tool_digests()
    return agent_digests() if run.mode == "step" else agent_digests() | tool_digests()


def _notes(run: AtomicRun) -> tuple[str, ...]:
    if run.harness is not None:
        return run.harness.notes
    if run.mode == "end-to-end" and run.agent in NEED_REFERENCES:
        return (f"{PLACEHOLDER_IMAGE} stands for the newest image output of the task.",)
    return ()


def execute(
    run: AtomicRun,
    planned: RunManifest,
    out: Path,
    listener: Listener,
    *,
    model: Model | None = None,
) -> ReadUnits:
    """Run what is not finished yet of what was planned, then read every unit back.

    `model` is asked instead of opening the one that the run names.
    """
    manifest = open_run(out, planned)
    asked = model or open_model(run.model, run.settings.budget)
    task = _task(run, manifest.similarity)
    references = load_atomic(run.data).tasks.values() if run.tooling.controls else ()
    with open_tooling(run.tooling, "atomic", references) as tooling:
        context = RunContext(
            files=files_folder(out),
            settings=run.settings,
            tooling=tooling,
            harness=run.harness,
            product=run.product,
        )
        evaluate(task, manifest, out, context, listener, model=asked)
    note_recording(run.tooling, out, manifest)
    return read_units(log_folder(out), manifest.tasks, manifest.epochs)


def _task(run: AtomicRun, similarity: str) -> Task:
    """The Inspect task; another similarity is another scoring, so the logs keep the first one."""
    data = str(run.data)
    # What foreign systems need is not imported by runs of ours: a replay needs no tool at all.
    if run.product is not None:
        from gta_bench.tasks.product import atomic_product

        return atomic_product(data=data, similarity=similarity)
    if run.harness is not None:
        from gta_bench.tasks.harness import atomic_harness

        return atomic_harness(data=data, similarity=similarity)
    if run.mode == "step":
        return atomic_step(data=data, agent=run.agent, images=run.images, similarity=similarity)
    return atomic(
        data=data,
        agent=run.agent,
        images=run.images,
        similarity=similarity,
        max_turns=run.max_turns,
    )
