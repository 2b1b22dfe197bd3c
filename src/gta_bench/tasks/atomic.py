"""`gta_bench/atomic`: GTA-Atomic end to end, the agent's loop with real tools."""

from inspect_ai import Task, task
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.agents.catalog import DEFAULT_AGENT, NEED_REFERENCES, load_agent
from gta_bench.agents.contract import Setup
from gta_bench.agents.dialogue import Dialogue
from gta_bench.agents.loop import work_on
from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import Dataset
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import DEFAULT_TURNS, Images, LoopLimits
from gta_bench.records.steps import ReplyStep, Trace
from gta_bench.records.workflow import WorkflowTask
from gta_bench.similarity.catalog import chosen_similarity
from gta_bench.tasks.atomic_step import atomic_samples, host_file, loaded_dataset, unit_store
from gta_bench.tasks.context import (
    current_loop_limits,
    current_published,
    current_settings,
    hidden_dataset,
    workspace_folder,
)
from gta_bench.tasks.run_tools import RunTools, UnitTools
from gta_bench.tasks.scorers import atomic_answers
from gta_bench.tasks.sealed import sealed
from gta_bench.tasks.show import step_text
from gta_bench.tools.source import PlaceholderImages


@task
def atomic(
    data: str | None = None,
    agent: str = DEFAULT_AGENT,
    images: Images = "path",
    similarity: str | None = None,
    max_turns: int = DEFAULT_TURNS,
) -> Task:
    """GTA-Atomic end to end: AnsAcc, AnsAcc+I and F1 by tool category, with real tools.

    `data` is the dataset's folder (data.atomic of gta.toml unless given), `agent` one of
    toolcalling, react, react-upstream, gold, silent or `pkg.mod:function`.
    """
    folder = hidden_dataset(data or current_settings().data.atomic)
    return Task(
        dataset=atomic_samples(folder),
        solver=use_tools(folder, agent, images, max_turns),
        scorer=atomic_answers(similarity or chosen_similarity(current_settings().scoring)),
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def use_tools(
    data: str, agent: str = DEFAULT_AGENT, images: Images = "path", max_turns: int = DEFAULT_TURNS
) -> Solver:
    """Let the agent work with the run's tools until it answers."""
    factory = load_agent(agent)
    dataset = loaded_dataset(data)
    run_tools = RunTools()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = unit_store(dataset, entry.id)
        workspace = open_workspace(dataset, entry, state.epoch)
        async with run_tools.for_unit(entry.id, state.epoch, entry.offered, workspace) as tools:
            dialogue = await _work(entry, tools, workspace)
        unit.steps = dialogue.trace
        unit.calls = tuple(dialogue.calls)
        unit.stops = tuple(dialogue.stops)
        state.messages = dialogue.messages
        return state

    async def _work(entry: AtomicTask, tools: UnitTools, workspace: Workspace) -> Dialogue:
        replays = agent in NEED_REFERENCES
        decide = factory(
            Setup(
                model=get_model(),
                images=images,
                image_source=lambda attachment: host_file(dataset, attachment),
                published=current_published(),
                references={entry.id: entry.steps} if replays else {},
            )
        )
        return await work_on(
            entry,
            decide,
            PlaceholderImages(tools.source) if replays else tools.source,
            workspace,
            tools=tools.offered,
            # A replay has exactly the turns of its reference.
            limits=LoopLimits(max_turns=len(entry.steps))
            if replays
            else current_loop_limits(max_turns),
        )

    return sealed(dataset, solve)


def open_workspace(dataset: Dataset, entry: AtomicTask | WorkflowTask, epoch: int) -> Workspace:
    """A fresh workspace with the task's files; what an interrupted attempt left is removed."""
    folder = workspace_folder(entry.id, epoch)
    if folder.exists():
        remove_tree(folder)
    files = {item.path: dataset.root / item.source for item in entry.attachments}
    return Workspace.create(folder, files, follow_links=True)


def shown_work(request: str, trace: Trace) -> list[ChatMessage]:
    """The trace as a reader of the log wants it."""
    messages: list[ChatMessage] = [ChatMessageUser(content=request)]
    for step in trace:
        if isinstance(step, ReplyStep):
            messages.append(ChatMessageTool(content=step_text(step)))
        else:
            messages.append(ChatMessageAssistant(content=step_text(step)))
    return messages
