"""`gta_bench/workflow_harness`, `gta_bench/atomic_harness`: a foreign system on a dataset."""

import asyncio

from inspect_ai import Task, task
from inspect_ai.model import ChatMessageAssistant, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.agents.calling import TaskWork
from gta_bench.agents.models import NO_MODEL
from gta_bench.agents.replies import clean_text
from gta_bench.errors import EnvironmentProblem, WorkFailed
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.collecting import OUTPUTS, keep_files, list_files
from gta_bench.harnesses.contract import Assignment, HarnessOutcome, RecordedTools
from gta_bench.harnesses.in_process import work_in_process, work_in_steps
from gta_bench.harnesses.sandbox import CELL
from gta_bench.harnesses.work import work_in_cell
from gta_bench.records.dialogue import UserTurn
from gta_bench.records.progress import short_cause
from gta_bench.records.steps import AnswerStep, MalformedStep
from gta_bench.runs.samples import UnitStore
from gta_bench.tasks.atomic import open_workspace, shown_work
from gta_bench.tasks.atomic_step import atomic_samples, loaded_dataset, unit_store
from gta_bench.tasks.attempts import capped
from gta_bench.tasks.context import artefact_store, current_harness, workspace_folder
from gta_bench.tasks.run_tools import RunTools
from gta_bench.tasks.scorers import atomic_answers, atomic_steps
from gta_bench.tasks.sealed import sealed
from gta_bench.tasks.workflow import input_files, loaded_workflow, workflow_samples
from gta_bench.tools.offering import own_tools


@task
def workflow_harness(data: str) -> Task:
    """GTA-Workflow with the run's harness."""
    return Task(
        dataset=workflow_samples(data),
        solver=deliver_by_harness(data),
        sandbox=CELL,
        fail_on_error=True,
        continue_on_fail=True,
    )


@task
def atomic_harness(data: str, similarity: str) -> Task:
    """GTA-Atomic end to end with the run's harness."""
    return Task(
        dataset=atomic_samples(data),
        solver=answer_by_harness(data),
        scorer=atomic_answers(similarity),
        sandbox=CELL,
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def deliver_by_harness(data: str) -> Solver:
    """Let the harness work; all that it left in `outputs` is kept."""
    dataset, run_tools = loaded_workflow(data), RunTools()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = unit_store(dataset, entry.id)
        workspace = open_workspace(dataset, entry, state.epoch)
        own = own_tools(dataset, entry)
        async with run_tools.for_unit(entry.id, state.epoch, own, workspace) as tools:
            work = TaskWork([UserTurn(content=entry.request)])
            recorded = RecordedTools(tools.source, tools.offered, work)
            # Before the harness works: it may take away what it was given.
            unit.inputs = await asyncio.to_thread(input_files, entry, workspace, artefact_store())
            await _work(state, unit, Assignment(entry, workspace, recorded, _asks_model()))
        await asyncio.to_thread(_keep_files, state)
        return state

    return sealed(dataset, capped(dataset, solve, collect=_keep_files))


@solver
def answer_by_harness(data: str) -> Solver:
    """Let the harness work; its calls and its answer are the trace."""
    dataset, run_tools = loaded_dataset(data), RunTools()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = unit_store(dataset, entry.id)
        workspace = open_workspace(dataset, entry, state.epoch)
        async with run_tools.for_unit(entry.id, state.epoch, entry.offered, workspace) as tools:
            work = TaskWork([UserTurn(content=entry.request)])
            recorded = RecordedTools(tools.source, tools.offered, work)
            await _work(state, unit, Assignment(entry, workspace, recorded, _asks_model()))
        return state

    return sealed(dataset, capped(dataset, solve))


async def _work(state: TaskState, unit: UnitStore, given: Assignment) -> None:
    """The harness's work, kept in the form of any agent's."""
    harness, work = current_harness(), given.tools.work
    outcome = await _outcome(harness, given)
    fault = _broken_tool(given) or outcome.fault
    if not work.calls:
        work.steps += outcome.steps
    printed = clean_text(outcome.printed)
    problem = outcome.problem or (None if fault is None else short_cause(str(fault)))
    if problem is not None:
        work.steps.append(MalformedStep(content=printed, reason=clean_text(problem)))
    if outcome.answer:
        work.steps.append(AnswerStep(content=clean_text(outcome.answer)))
    unit.steps = work.trace
    unit.calls = tuple(work.calls)
    state.messages = shown_work(given.task.request, work.trace)
    if printed:
        state.messages.append(ChatMessageAssistant(content=f"It printed:\n\n{printed}"))
    if fault is not None:
        raise fault


def _broken_tool(given: Assignment) -> Exception | None:
    """What kept a tool from answering; never ours alone, as a harness can spoil its own folders."""
    broken = given.tools.broken
    if isinstance(broken, EnvironmentProblem):
        return WorkFailed(str(broken), exit_code=broken.exit_code)
    return broken


async def _outcome(harness: Harness, given: Assignment) -> HarnessOutcome:
    if harness.kind == "bridged":
        return await work_in_process(harness, given)
    return await work_in_cell(harness, given)


def _asks_model() -> bool:
    return str(get_model()) != NO_MODEL.name


def _keep_files(state: TaskState) -> None:
    """Read when nothing of the harness runs any more, by the rules of finished results."""
    unit = UnitStore(store=state.store)
    listing = list_files(workspace_folder(str(state.sample_id), state.epoch), OUTPUTS)
    kept = keep_files(artefact_store(), listing.files)
    unit.deliverables = kept.deliverables
    unit.strays = tuple(one.name for one in (*listing.left_out, *kept.left_out))


@task
def atomic_step_harness(data: str, similarity: str) -> Task:
    """GTA-Atomic step by step with the run's agent, which has `next_step`."""
    return Task(
        dataset=atomic_samples(data),
        solver=decide_by_harness(data),
        scorer=atomic_steps(similarity),
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def decide_by_harness(data: str) -> Solver:
    """Ask the agent for one step after every prefix of the reference."""
    dataset = loaded_dataset(data)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = unit_store(dataset, entry.id)
        folder = open_workspace(dataset, entry, state.epoch).root
        # As published: the tools of the task, as toolmeta.json defines them.
        tools = [dataset.tools.get(name, own) for name, own in entry.offered.items()]
        outcome = await work_in_steps(current_harness(), entry, tools, folder)
        unit.steps = outcome.steps
        if outcome.fault is not None:
            raise outcome.fault
        state.messages = shown_work(entry.request, unit.steps)
        return state

    return sealed(dataset, capped(dataset, solve))
