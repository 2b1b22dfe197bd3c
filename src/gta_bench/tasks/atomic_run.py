"""A run of GTA-Atomic: its manifest, the evaluation, and its units read back."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from inspect_ai import Task
from inspect_ai.model import Model

from gta_bench.agents.catalog import NEED_REFERENCES, load_agent
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.run import Mode, RunManifest
from gta_bench.runs.directory import files_folder, log_folder, open_run
from gta_bench.runs.logs import ReadUnits, read_units
from gta_bench.tasks.atomic import atomic
from gta_bench.tasks.atomic_step import atomic_step
from gta_bench.tasks.context import RunContext
from gta_bench.tasks.evaluation import (
    Listener,
    agent_digests,
    evaluate,
    harness_digests,
    select_tasks,
    tool_digests,
)
from gta_bench.tasks.models import open_model
from gta_bench.tasks.system_run import SystemRun, manifest_fields
from gta_bench.tasks.tooling import note_recording, open_tooling


@dataclass(frozen=True, kw_only=True)
class AtomicRun(SystemRun):
    """What to run: one system on a selection of GTA-Atomic's tasks."""

    mode: Mode
    similarity: str

    @property
    def loops(self) -> bool:
        """Whether an agent of ours decides turn by turn; a step is one decision."""
        return super().loops and self.mode == "end-to-end"


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
        tasks=select_tasks(dataset.tasks, run.tasks),
        prompts=_prompts(run),
        similarity=run.similarity,
        notes=_notes(run),
        **manifest_fields(run),
    )


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
    # A replay needs no tool at all, so runs of our agents import nothing of foreign systems.
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
