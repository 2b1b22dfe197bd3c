"""`gta_bench/atomic_step_harness`: a Python agent of the original contract, step by step."""

from inspect_ai import Task, task
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.harnesses.in_process import work_in_steps
from gta_bench.tasks.atomic import open_workspace, shown_work
from gta_bench.tasks.atomic_step import atomic_samples, loaded_dataset, unit_store
from gta_bench.tasks.attempts import capped
from gta_bench.tasks.context import current_harness
from gta_bench.tasks.scorers import atomic_steps
from gta_bench.tasks.sealed import sealed


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
