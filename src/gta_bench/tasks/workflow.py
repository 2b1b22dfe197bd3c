"""`gta_bench/workflow`: GTA-Workflow, the agent's loop with real tools and files as its result."""

import asyncio
import shutil
from functools import cache
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.agents.catalog import DEFAULT_AGENT, NEED_REFERENCES, load_agent
from gta_bench.agents.contract import Setup
from gta_bench.agents.dialogue import Dialogue, dump_messages, load_messages
from gta_bench.agents.earlier import earlier_messages
from gta_bench.agents.history import History, read_turns
from gta_bench.agents.loop import work_on
from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.records.files import Deliverable
from gta_bench.records.run import DEFAULT_TURNS, Images
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.runs.samples import UnitData, UnitStore
from gta_bench.tasks.atomic import open_workspace, shown_work
from gta_bench.tasks.atomic_step import host_file, unit_store
from gta_bench.tasks.context import (
    Earlier,
    artefact_store,
    current_loop_limits,
    current_published,
    current_settings,
    earlier_round,
    hidden_dataset,
    unit_folder,
    workspace_folder,
)
from gta_bench.tasks.run_tools import RunTools
from gta_bench.tasks.sealed import sealed
from gta_bench.tasks.workflow_scorer import judged_root
from gta_bench.tools.offering import own_tools

# What a unit that is not worked on again takes over from the round before; how replies ended is
# counted beside the model calls of the same round.
CARRIED = ("steps", "calls", "messages", "turns", "deliverables", "inputs", "strays")


@task
def workflow(
    data: str | None = None,
    agent: str = DEFAULT_AGENT,
    images: Images = "path",
    max_turns: int = DEFAULT_TURNS,
) -> Task:
    """GTA-Workflow: open-ended tasks whose result is files, scored by the model role `judge`.

    `data` is the dataset's folder (data.workflow of gta.toml unless given), `agent` one of
    toolcalling, react, react-upstream, silent or `pkg.mod:function`.
    """
    folder = hidden_dataset(data or current_settings().data.workflow)
    return Task(
        dataset=workflow_samples(folder),
        solver=deliver(folder, agent, images, max_turns),
        scorer=judged_root(),
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def deliver(
    data: str, agent: str = DEFAULT_AGENT, images: Images = "path", max_turns: int = DEFAULT_TURNS
) -> Solver:
    """Let the agent work until it answers; all that it wrote is kept."""
    check_agent(agent)
    factory = load_agent(agent)
    dataset = loaded_workflow(data)
    run_tools = RunTools()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = unit_store(dataset, entry.id)
        earlier = earlier_round()
        if earlier is not None and (entry.id, state.epoch) not in earlier.words:
            return _carry_over(state, unit, entry, earlier)
        decide = factory(
            Setup(
                model=get_model(),
                images=images,
                image_source=lambda attachment: host_file(dataset, attachment),
                published=current_published(),
            )
        )
        workspace, before = _beginning(dataset, entry, state.epoch, earlier)
        own = own_tools(dataset, entry)
        async with run_tools.for_unit(entry.id, state.epoch, own, workspace) as tools:
            dialogue = await work_on(
                entry,
                decide,
                tools.source,
                workspace,
                tools=tools.offered,
                limits=current_loop_limits(max_turns),
                before=before,
            )
        unit.steps = dialogue.trace
        unit.calls = tuple(dialogue.calls)
        unit.stops = tuple(dialogue.stops)
        unit.messages = dump_messages(dialogue.messages)
        await asyncio.to_thread(_keep_files, unit, entry, workspace, artefact_store())
        state.messages = dialogue.messages
        return state

    return sealed(dataset, solve)


def check_agent(agent: str) -> None:
    """Refuse an agent that needs what GTA-Workflow does not have."""
    if agent in NEED_REFERENCES:
        raise UsageError(
            f"Agent {agent!r} replays a reference, and GTA-Workflow has none; "
            "`silent` is the null system."
        )


def workflow_samples(folder: str) -> MemoryDataset:
    """The dataset in that folder as Inspect's samples."""
    tasks = loaded_workflow(folder).tasks.values()
    return MemoryDataset([workflow_sample(entry) for entry in tasks], name="gta-workflow")


def workflow_sample(entry: WorkflowTask) -> Sample:
    """A task as Inspect's sample, without what is asked of its deliverables (`sealed`)."""
    return Sample(id=entry.id, input=entry.request)


@cache
def loaded_workflow(folder: str) -> WorkflowDataset:
    """The dataset in that folder, read once."""
    return load_workflow(Path(folder))


def _beginning(
    dataset: WorkflowDataset, entry: WorkflowTask, epoch: int, earlier: Earlier | None
) -> tuple[Workspace, Dialogue | None]:
    """A fresh workspace, or a copy of the last round's with all that was said in it."""
    if earlier is None:
        return open_workspace(dataset, entry, epoch), None
    key = (entry.id, epoch)
    kept = earlier.units[key]
    before = _kept_dialogue(entry, kept)
    before.ask(earlier.words[key])
    return Workspace.create(_copied_workspace(earlier, *key), {}), before


def _kept_dialogue(entry: WorkflowTask, kept: UnitData) -> Dialogue:
    """The dialogue of the round before, in the form of this version or of earlier ones."""
    messages = load_messages(kept.messages, model=str(get_model()))
    if not messages:
        history = History(task=entry.id, turns=read_turns(kept.turns))
        messages = earlier_messages(history, kept.steps or ())
    return Dialogue(messages, list(kept.calls))


def _copied_workspace(earlier: Earlier, task: str, epoch: int) -> Path:
    """The workspace as the last round left it, copied so that each round keeps its own."""
    folder = workspace_folder(task, epoch)
    if folder.exists():
        remove_tree(folder)
    return Path(shutil.copytree(unit_folder(earlier.files, task, epoch), folder, symlinks=True))


def _carry_over(
    state: TaskState, unit: UnitStore, entry: WorkflowTask, earlier: Earlier
) -> TaskState:
    """Keep once more what a unit with nothing to fix left behind."""
    kept = earlier.units[entry.id, state.epoch]
    for name in CARRIED:
        setattr(unit, name, getattr(kept, name))
    _copied_workspace(earlier, entry.id, state.epoch)
    state.messages = shown_work(entry.request, kept.steps or ())
    return state


def _keep_files(
    unit: UnitStore, entry: WorkflowTask, workspace: Workspace, store: ArtefactStore
) -> None:
    """Everything that the system wrote, and what it was given, by name and content."""
    written = workspace.outputs()
    unit.deliverables = tuple(kept_file(workspace, store, file.path) for file in written.files)
    unit.strays = tuple(written.strays)
    unit.inputs = input_files(entry, workspace, store)


def input_files(
    entry: WorkflowTask, workspace: Workspace, store: ArtefactStore
) -> tuple[Deliverable, ...]:
    """What the system was given, by name and content."""
    return tuple(kept_file(workspace, store, item.path) for item in entry.attachments)


def kept_file(workspace: Workspace, store: ArtefactStore, path: str) -> Deliverable:
    """A file of a workspace, kept by its content."""
    data = workspace.read(path, most_bytes=workspace.quota.input_bytes)
    return store.keep_file(path, data)
