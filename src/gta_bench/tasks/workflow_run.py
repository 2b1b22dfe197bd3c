"""A run of GTA-Workflow: its manifest, the evaluation, and its units read back."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from inspect_ai import Task
from inspect_ai.model import Model

from gta_bench.agents.catalog import load_agent
from gta_bench.cluster.backend import INLINE, Backend, Work
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.run import RunManifest
from gta_bench.runs.artefacts import ARTEFACTS
from gta_bench.runs.directory import log_folder, open_run
from gta_bench.runs.logs import ReadWorkflowUnits, read_workflow_units
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings
from gta_bench.tasks.context import Earlier, RunContext, workspaces
from gta_bench.tasks.evaluation import (
    agent_digests,
    evaluate,
    harness_digests,
    select_tasks,
    tool_digests,
)
from gta_bench.tasks.harness import workflow_harness
from gta_bench.tasks.models import open_model
from gta_bench.tasks.product import workflow_product
from gta_bench.tasks.shards import Listener, Part, run_units
from gta_bench.tasks.system_run import SystemRun, check_backend, manifest_fields
from gta_bench.tasks.tooling import note_recording, open_tooling
from gta_bench.tasks.workflow import check_agent, workflow


def plan(run: SystemRun) -> RunManifest:
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
        tasks=select_tasks(dataset.tasks, run.tasks),
        prompts=(agent_digests() if run.harness is None else harness_digests()) | tool_digests(),
        notes=() if run.harness is None else run.harness.notes,
        **manifest_fields(run),
    )


def execute(
    run: SystemRun,
    planned: RunManifest,
    out: StorePath,
    listener: Listener,
    *,
    model: Model | None = None,
    earlier: Earlier | None = None,
    backend: Backend = INLINE,
) -> ReadWorkflowUnits:
    """Run what is not finished yet of what was planned, then read every unit back.

    `model` is asked instead of opening the one that the run names; it stays in this process.
    """
    manifest = open_run(out, planned)

    def work(settings: Settings) -> Work:
        own = replace(run, settings=settings)
        if backend is INLINE:
            return partial(_evaluate, own, manifest, out, earlier, model=model, listener=listener)
        return partial(_evaluate, own, manifest, out, earlier)

    check_backend(run, backend)
    run_units(work, manifest, out, run.settings, listener, backend)
    note_recording(run.tooling, out, manifest)
    return read_workflow_units(log_folder(out), manifest.tasks, manifest.epochs)


def _evaluate(
    run: SystemRun,
    manifest: RunManifest,
    out: StorePath,
    earlier: Earlier | None,
    part: Part,
    *,
    model: Model | None = None,
    listener: Listener | None = None,
) -> None:
    """Evaluate a part of the run in this process."""
    task = _task(run)
    asked = model or open_model(run.model, run.settings.budget)
    with open_tooling(run.tooling, "workflow") as tooling, workspaces(out) as files:
        context = RunContext(
            files=files,
            settings=run.settings,
            tooling=tooling,
            artefacts=out / ARTEFACTS,
            earlier=earlier,
            product=run.product,
            harness=run.harness,
        )
        evaluate(task, manifest, part, context, model=asked, listener=listener)


def _task(run: SystemRun) -> Task:
    data = str(run.data)
    if run.product is not None:
        return workflow_product(data=data)
    if run.harness is not None:
        return workflow_harness(data=data)
    return workflow(data=data, agent=run.agent, images=run.images, max_turns=run.max_turns)
