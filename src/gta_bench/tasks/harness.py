"""`gta_bench/workflow_harness`, `gta_bench/atomic_harness`: a foreign system on a dataset.

`gta_bench/atomic_step_harness` runs an agent in this process step by step.
"""

import asyncio
from collections.abc import Awaitable, Callable

from inspect_ai import Task, task
from inspect_ai.model import ChatMessageAssistant, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.agents.calling import RecordedTools, TaskWork, clean_text
from gta_bench.agents.models import NO_MODEL
from gta_bench.datasets.model import Dataset
from gta_bench.errors import EnvironmentProblem, ToolServerFailure, WorkFailed
from gta_bench.harnesses.collecting import OUTPUTS, keep_files, list_files
from gta_bench.harnesses.contract import Assignment
from gta_bench.harnesses.in_process import work_in_process, work_in_steps
from gta_bench.harnesses.work import CELL, work_in_cell
from gta_bench.records.dialogue import UserTurn
from gta_bench.records.progress import short_cause
from gta_bench.records.steps import AnswerStep, MalformedStep
from gta_bench.records.tool_servers import ServerState
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.samples import UnitStore
from gta_bench.tasks import units
from gta_bench.tasks.attempts import limit_attempts
from gta_bench.tasks.context import artefact_store, current_harness, workspace_folder
from gta_bench.tasks.run_tools import RunTools
from gta_bench.tasks.scorers import atomic_answers, atomic_steps
from gta_bench.tasks.workflow import store_inputs
from gta_bench.tools.offering import list_own_tools


@task
def workflow_harness(data: str) -> Task:
    """GTA-Workflow with the run's harness."""
    samples = units.make_samples(units.load_workflow_once(data))
    return units.make_task(dataset=samples, solver=deliver_by_harness(data), sandbox=CELL)


@task
def atomic_harness(data: str, similarity: str) -> Task:
    """GTA-Atomic end to end with the run's harness."""
    return units.make_task(
        dataset=units.make_samples(units.load_atomic_once(data)),
        solver=answer_by_harness(data),
        scorer=atomic_answers(similarity),
        sandbox=CELL,
    )


@task
def atomic_step_harness(data: str, similarity: str) -> Task:
    """GTA-Atomic step by step with the run's agent, which has `next_step`."""
    return units.make_task(
        dataset=units.make_samples(units.load_atomic_once(data)),
        solver=decide_by_harness(data),
        scorer=atomic_steps(similarity),
    )


@solver
def deliver_by_harness(data: str) -> Solver:
    """Let the harness work, and store the files that it left in `outputs`."""
    dataset = units.load_workflow_once(data)
    work = _make_worker(dataset)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await work(state, generate)
        await asyncio.to_thread(_store_files, state)
        return state

    return units.seal(dataset, limit_attempts(dataset, solve, collect=_store_files))


@solver
def answer_by_harness(data: str) -> Solver:
    """Let the harness work; its calls and its answer are the trace."""
    dataset = units.load_atomic_once(data)
    return units.seal(dataset, limit_attempts(dataset, _make_worker(dataset)))


def _make_worker(dataset: Dataset) -> Solver:
    """Return a solver that lets the harness work on the sample's task."""
    run_tools = RunTools()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = units.open_unit(dataset, entry.id)
        workspace = units.open_workspace(dataset, entry, state.epoch)
        own = list_own_tools(dataset, entry)
        opening = run_tools.for_unit(
            *(entry.id, state.epoch, own, workspace), states=isinstance(entry, WorkflowTask)
        )
        async with opening as tools:
            work = TaskWork([UserTurn(content=entry.request)])
            recorded = RecordedTools(tools.source, tools.offered, work)
            if isinstance(entry, WorkflowTask):  # before the harness can remove its inputs
                store = artefact_store()
                unit.inputs = await asyncio.to_thread(store_inputs, entry, workspace, store)
            asks_model = str(get_model()) != NO_MODEL.name
            given = Assignment(entry, workspace, recorded, asks_model)
            await _work(state, unit, given, tools.read_states)
        return state

    return solve


async def _work(
    state: TaskState,
    unit: UnitStore,
    given: Assignment,
    read_states: Callable[[], Awaitable[tuple[ServerState, ...]]],
) -> None:
    """Run the harness and record its work in the same form as an agent's."""
    harness, work = current_harness(), given.tools.work
    run = work_in_process if harness.kind == "bridged" else work_in_cell
    outcome = await run(harness, given)
    fault = given.tools.broken or outcome.fault
    if isinstance(given.tools.broken, EnvironmentProblem):
        # Never our fault alone, because a harness can damage its own folders.
        fault = WorkFailed(str(fault), exit_code=given.tools.broken.exit_code)
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
    state.messages = units.show_trace(given.task.request, work.trace)
    if printed:
        state.messages.append(ChatMessageAssistant(content=f"It printed:\n\n{printed}"))
    try:
        # The last attempt is scored by what it left, whatever ended it.
        unit.states = await read_states()
    except ToolServerFailure:
        if fault is None:
            raise
    if fault is not None:
        raise fault


def _store_files(state: TaskState) -> None:
    """Store the outputs when the harness has ended, by the rules of finished results."""
    unit = UnitStore(store=state.store)
    listing = list_files(workspace_folder(str(state.sample_id), state.epoch), OUTPUTS)
    kept = keep_files(artefact_store(), listing.files)
    unit.deliverables = kept.deliverables
    unit.strays = tuple(one.name for one in (*listing.left_out, *kept.left_out))


@solver
def decide_by_harness(data: str) -> Solver:
    """Ask the agent for one step after every prefix of the reference."""
    dataset = units.load_atomic_once(data)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = units.open_unit(dataset, entry.id)
        folder = units.open_workspace(dataset, entry, state.epoch).root
        tools = units.list_step_tools(dataset, entry, "react-upstream")  # as published
        outcome = await work_in_steps(current_harness(), entry, tools, folder)
        unit.steps = outcome.steps
        if outcome.fault is not None:
            raise outcome.fault
        state.messages = units.show_trace(entry.request, unit.steps)
        return state

    return units.seal(dataset, limit_attempts(dataset, solve))
