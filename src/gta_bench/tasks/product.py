"""Tasks put to a product behind HTTP: it works with its own tools, its files are kept."""

import asyncio

from inspect_ai import Task, task
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.agents.prompts import render
from gta_bench.datasets.model import Dataset
from gta_bench.harnesses.collecting import Keeping
from gta_bench.harnesses.delivery import kept_inputs, stated_usage
from gta_bench.harnesses.product import Product, ProductClient, State
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import DatasetName, System
from gta_bench.records.steps import AnswerStep, StepError
from gta_bench.records.workflow import WorkflowTask
from gta_bench.tasks.atomic import shown_work
from gta_bench.tasks.atomic_step import atomic_samples, loaded_dataset, unit_store
from gta_bench.tasks.attempts import capped
from gta_bench.tasks.context import artefact_store, current_product
from gta_bench.tasks.scorers import atomic_answers
from gta_bench.tasks.sealed import sealed
from gta_bench.tasks.workflow import loaded_workflow, workflow_samples

AGENT = "product"


@task
def workflow_product(data: str) -> Task:
    """GTA-Workflow with the product that the run names."""
    return Task(
        dataset=workflow_samples(data),
        solver=ask_product(data),
        fail_on_error=True,
        continue_on_fail=True,
    )


@task
def atomic_product(data: str, similarity: str) -> Task:
    """GTA-Atomic end to end with the product that the run names; its tool calls are not known."""
    return Task(
        dataset=atomic_samples(data),
        solver=ask_product(data, "atomic"),
        scorer=atomic_answers(similarity),
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def ask_product(data: str, name: DatasetName = "workflow") -> Solver:
    """Submit the task, wait, and keep what comes.

    A product that cannot be reached fails the unit, which the same command runs again. One that
    says that it failed, or takes too long, has delivered what there is.
    """
    dataset: Dataset = loaded_workflow(data) if name == "workflow" else loaded_dataset(data)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = unit_store(dataset, entry.id)
        store = artefact_store()
        inputs = await asyncio.to_thread(kept_inputs, dataset, entry, store)
        client = ProductClient(current_product())
        files = {item.path.removeprefix("inputs/"): store.read(item.digest) for item in inputs}
        clock = asyncio.get_running_loop().time
        begun = clock()
        keeping = Keeping(store, {item.digest for item in inputs})
        ended = await client.work(_prompt(entry), files, keeping)
        usage = stated_usage(ended.meta)
        if ended.meta.duration is None:
            usage = usage.model_copy(update={"seconds": clock() - begun})
        kept, trace = keeping.result, _trace(ended)
        unit.steps = trace
        unit.deliverables = kept.deliverables
        unit.inputs = inputs
        unit.strays = tuple(item.name for item in kept.left_out)
        unit.usage = usage
        state.messages = shown_work(entry.request, trace)
        return state

    return sealed(dataset, capped(dataset, solve, blames_itself=True))


def product_system(product: Product) -> System:
    """The product as it names itself; fails now, in one line, where it cannot be reached."""
    about = asyncio.run(ProductClient(product).about())
    return System(
        model=about.model or "unknown",
        agent=AGENT,
        harness=about.name,
        harness_version=about.version,
    )


def _prompt(entry: AtomicTask | WorkflowTask) -> str:
    """The request, after the names of the files that come with it."""
    names = ", ".join(f"`{item.path.removeprefix('inputs/')}`" for item in entry.attachments)
    return f"{render('files.md', paths=names)}\n\n{entry.request}" if names else entry.request


def _trace(ended: State) -> tuple[AnswerStep, ...]:
    if ended.status == "failed":
        error = StepError(type="failed", message=ended.error)
        return (AnswerStep(content=ended.final, error=error),)
    return (AnswerStep(content=ended.final.strip()),)
