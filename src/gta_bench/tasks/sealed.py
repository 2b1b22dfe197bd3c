"""A task's references stay out of Inspect's sample until its system has done its work.

An agent in this process can ask Inspect for the sample that it works on, with target and metadata.
So a sample has neither: the solver takes the task from the dataset by its id, and puts its record
where scorers and readers of the log look for it when the work is over, well or not.
"""

from functools import wraps

from inspect_ai.solver import Generate, Solver, TaskState

from gta_bench.datasets.model import Dataset
from gta_bench.runs.samples import TASK


def sealed(dataset: Dataset, solve: Solver) -> Solver:
    """The solver, after which the sample has the record of its task."""

    @wraps(solve)
    async def work(state: TaskState, generate: Generate) -> TaskState:
        try:
            return await solve(state, generate)
        finally:
            task = dataset.tasks[str(state.sample_id)]
            state.metadata[TASK] = task.model_dump(mode="json")

    return work
