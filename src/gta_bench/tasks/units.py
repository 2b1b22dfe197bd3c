"""What the solvers of all tasks share: datasets, samples, workspaces, and the seal around them.

An agent in this process can ask Inspect for its sample, with target and metadata. So a sample has
neither: the solver takes the task from the dataset by its id, and `seal` adds the task's record to
the sample only when the work is over, whether it succeeded or not.

`seal` also removes secrets from what the unit wrote before it is scored. Scores are computed from
what the log contains, so scoring the log again gives the same result.
"""

import asyncio
from functools import cache, partial, wraps
from pathlib import Path

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState
from inspect_ai.util import store_as

from gta_bench.agents.contract import Setup
from gta_bench.confine.files import redact_tree, remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import Images
from gta_bench.records.steps import ReplyStep, Trace
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.redaction import current_redactor
from gta_bench.runs.samples import TASK, UnitData, UnitStore, read_unit_data
from gta_bench.tasks.context import (
    current_context,
    current_published,
    unit_folder,
    workspace_folder,
)
from gta_bench.tasks.scorers import format_step

# Samples with an error stay unscored, and the same command runs them again.
make_task = partial(Task, fail_on_error=True, continue_on_fail=True)


@cache
def load_atomic_once(folder: str) -> AtomicDataset:
    """Load the Atomic dataset in that folder, once."""
    return load_atomic(Path(folder))


@cache
def load_workflow_once(folder: str) -> WorkflowDataset:
    """Load the Workflow dataset in that folder, once."""
    return load_workflow(Path(folder))


def forget_datasets(*, unless: object) -> None:
    """Load datasets again, unless that is what they were loaded for."""
    if _loaded_for != [unless]:
        load_atomic_once.cache_clear()
        load_workflow_once.cache_clear()
        _loaded_for[:] = [unless]


_loaded_for: list[object] = []


def make_samples(dataset: Dataset) -> MemoryDataset:
    """Return the tasks as samples of Inspect, without anything to score them by (`seal`)."""
    samples = [Sample(id=entry.id, input=entry.request) for entry in dataset.tasks.values()]
    name = "gta-atomic" if isinstance(dataset, AtomicDataset) else "gta-workflow"
    return MemoryDataset(samples, name=name)


def make_setup(dataset: Dataset, images: Images) -> Setup:
    """Return the setup of an agent for the model that is being evaluated."""
    return Setup(
        model=get_model(),
        images=images,
        image_source=lambda attachment: str(dataset.root / attachment.source),
        published=current_published(),
    )


def list_step_tools(dataset: AtomicDataset, entry: AtomicTask, agent: str) -> list[ToolSpec]:
    """Return the task's own definitions, or, as upstream, those of toolmeta.json."""
    if agent == "react-upstream":
        return [dataset.tools.get(name, tool) for name, tool in entry.offered.items()]
    return list(entry.offered.values())


def open_unit(dataset: Dataset, task: str) -> UnitStore:
    """Return the store of the sample that is being solved, with the digests of its task."""
    unit = store_as(UnitStore)
    unit.digests = task_digests(dataset, task)
    return unit


def open_workspace(dataset: Dataset, entry: AtomicTask | WorkflowTask, epoch: int) -> Workspace:
    """Create a workspace with the task's files; files of an interrupted attempt are removed."""
    folder = workspace_folder(entry.id, epoch)
    if folder.exists():
        remove_tree(folder)
    files = {item.path: dataset.root / item.source for item in entry.attachments}
    return Workspace.create(folder, files, follow_links=True)


def show_trace(request: str, trace: Trace) -> list[ChatMessage]:
    """Return the trace as messages, for people who read the log."""
    messages: list[ChatMessage] = [ChatMessageUser(content=request)]
    for step in trace:
        make = ChatMessageTool if isinstance(step, ReplyStep) else ChatMessageAssistant
        messages.append(make(content=format_step(step)))
    return messages


def seal(dataset: Dataset, solve: Solver) -> Solver:
    """Wrap a solver so that the sample has the record of its task only afterwards."""

    @wraps(solve)
    async def work(state: TaskState, generate: Generate) -> TaskState:
        try:
            return await solve(state, generate)
        finally:
            task = dataset.tasks[str(state.sample_id)]
            state.metadata[TASK] = task.model_dump(mode="json")
            _redact_unit(state)
            # Even if the sample is canceled in the meantime.
            await asyncio.shield(asyncio.to_thread(_redact_files, task.id, state.epoch))

    return work


def _redact_unit(state: TaskState) -> None:
    """Remove secrets from what the unit's solver put in the store."""
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
    """Remove secrets from the unit's workspace, if it belongs to a run."""
    context = current_context()
    if context is not None:
        redact_tree(unit_folder(context.files, task, epoch), current_redactor())
