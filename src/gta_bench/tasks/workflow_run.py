"""A run of GTA-Workflow: its manifest, the evaluation, and its units read back."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from inspect_ai import Task
from inspect_ai.model import Model

from gta_bench.agents.catalog import load_agent
from gta_bench.agents.loop import MAX_TURNS
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.workflow import load_workflow
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.product import Product
from gta_bench.records.run import OWN_TOOLS, Images, RunManifest
from gta_bench.runs.artefacts import ARTEFACTS
from gta_bench.runs.directory import files_folder, log_folder, open_run
from gta_bench.runs.logs import ReadWorkflowUnits, read_workflow_units
from gta_bench.settings import Settings
from gta_bench.tasks.context import Earlier, RunContext
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
from gta_bench.tasks.harness import workflow_harness
from gta_bench.tasks.models import ChosenModel, open_model
from gta_bench.tasks.product import product_system, workflow_product
from gta_bench.tasks.tooling import PLAIN, Tooling, note_recording, open_tooling
from gta_bench.tasks.workflow import check_agent, workflow


@dataclass(frozen=True)
class WorkflowRun:
    """What to run: one system on a selection of GTA-Workflow's tasks."""

    data: Path
    model: ChosenModel
    agent: str
    images: Images
    tasks: str | None
    epochs: int
    settings: Settings
    max_turns: int = MAX_TURNS
    tooling: Tooling = PLAIN
    product: Product | None = None
    harness: Harness | None = None


def plan(run: WorkflowRun) -> RunManifest:
    """The manifest of a run that has not begun."""
    if run.harness is None:
        check_agent(run.agent)
        load_agent(run.agent)
    dataset = load_workflow(run.data)
    return RunManifest(
        created=datetime.now(UTC),
        dataset="workflow",
        dataset_digest=dataset_digest(dataset),
        mode="workflow",
        system=described_system(run.model, run.agent, run.images, run.harness)
        if run.product is None
        else product_system(run.product),
        tasks=select_tasks(dataset.tasks, run.tasks),
        epochs=run.epochs,
        prompts=(agent_digests() if run.harness is None else harness_digests()) | tool_digests(),
        packages=package_versions(),
        network=None if run.harness is None else run.harness.network,
        notes=() if run.harness is None else run.harness.notes,
        **(run.tooling.planned() if run.product is None else {"tools": OWN_TOOLS}),
    )


def execute(
    run: WorkflowRun,
    planned: RunManifest,
    out: Path,
    listener: Listener,
    *,
    model: Model | None = None,
    earlier: Earlier | None = None,
) -> ReadWorkflowUnits:
    """Run what is not finished yet of what was planned, then read every unit back.

    `model` is asked instead of opening the one that the run names.
    """
    manifest = open_run(out, planned)
    task = _task(run)
    asked = model or open_model(run.model, run.settings.budget)
    with open_tooling(run.tooling, "workflow") as tooling:
        context = RunContext(
            files=files_folder(out),
            settings=run.settings,
            tooling=tooling,
            artefacts=out / ARTEFACTS,
            earlier=earlier,
            product=run.product,
            harness=run.harness,
        )
        evaluate(task, manifest, out, context, listener, model=asked)
    note_recording(run.tooling, out, manifest)
    return read_workflow_units(log_folder(out), manifest.tasks, manifest.epochs)


def _task(run: WorkflowRun) -> Task:
    data = str(run.data)
    if run.product is not None:
        return workflow_product(data=data)
    if run.harness is not None:
        return workflow_harness(data=data)
    return workflow(data=data, agent=run.agent, images=run.images, max_turns=run.max_turns)
