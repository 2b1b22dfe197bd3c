"""What is around every solver: references stay out of the sample, and secrets out of the unit.

An agent in this process can ask Inspect for the sample that it works on, with target and metadata.
So a sample has neither: the solver takes the task from the dataset by its id, and puts its record
where scorers and readers of the log look for it when the work is over, well or not.

Secrets leave what the unit left before it is scored: a score follows from what the log keeps, and
whoever scores the log again gets the same.
"""

import asyncio
from functools import wraps

from inspect_ai.solver import Generate, Solver, TaskState

from gta_bench.confine.files import redact_tree
from gta_bench.datasets.model import Dataset
from gta_bench.redaction import current_redactor
from gta_bench.runs.samples import TASK, UnitData, UnitStore, read_unit_data
from gta_bench.tasks.context import current_context, unit_folder


def sealed(dataset: Dataset, solve: Solver) -> Solver:
    """The solver, after which the sample has the record of its task."""

    @wraps(solve)
    async def work(state: TaskState, generate: Generate) -> TaskState:
        try:
            return await solve(state, generate)
        finally:
            task = dataset.tasks[str(state.sample_id)]
            state.metadata[TASK] = task.model_dump(mode="json")
            _redact_unit(state)
            # Also where the sample is cancelled meanwhile.
            await asyncio.shield(asyncio.to_thread(_redact_files, task.id, state.epoch))

    return work


def _redact_unit(state: TaskState) -> None:
    """Take secrets out of what the unit's solver kept in the store."""
    if not current_redactor():
        return
    whole = read_unit_data(state.store.items()).model_dump_json().encode()
    clean = current_redactor().json(whole)
    if clean == whole:
        return
    data, unit = UnitData.model_validate_json(clean), UnitStore(store=state.store)
    for name in data.model_fields_set:
        setattr(unit, name, getattr(data, name))


def _redact_files(task: str, epoch: int) -> None:
    """Take secrets out of the unit's workspace, where a run keeps it."""
    context = current_context()
    if context is not None:
        redact_tree(unit_folder(context.files, task, epoch), current_redactor())
