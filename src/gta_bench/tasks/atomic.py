"""`gta_bench/atomic` and `gta_bench/atomic_step`: GTA-Atomic end to end, and step by step."""

from dataclasses import replace

from inspect_ai import Task, task
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect

from gta_bench.agents.catalog import DEFAULT_AGENT, NEED_REFERENCES
from gta_bench.agents.contract import Decision, list_dataset_files, make_step_histories
from gta_bench.agents.loop import work_on
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.run import DEFAULT_TURNS, Images, LoopLimits
from gta_bench.similarity.catalog import choose_similarity
from gta_bench.tasks import units
from gta_bench.tasks.context import (
    current_loop_limits,
    current_settings,
    find_agent,
    locate_dataset,
)
from gta_bench.tasks.run_tools import RunTools
from gta_bench.tasks.scorers import atomic_answers, atomic_steps, format_step
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

    `data` is the dataset's folder (default: data.atomic of gta.toml), `agent` is one of
    toolcalling, react, react-upstream, gold, silent or `pkg.mod:function`.
    """
    folder = locate_dataset(data or current_settings().data.atomic)
    return units.make_task(
        dataset=units.make_samples(units.load_atomic_once(folder)),
        solver=use_tools(folder, agent, images, max_turns),
        scorer=atomic_answers(similarity or choose_similarity(current_settings().scoring)),
    )


@task
def atomic_step(
    data: str | None = None,
    agent: str = DEFAULT_AGENT,
    images: Images = "path",
    similarity: str | None = None,
) -> Task:
    """GTA-Atomic step by step: InstAcc, ToolAcc, ArgAcc, SummAcc.

    `data` is the dataset's folder (default: data.atomic of gta.toml), `agent` is one of
    toolcalling, react, react-upstream, gold, silent or `pkg.mod:function`.
    """
    folder = locate_dataset(data or current_settings().data.atomic)
    return units.make_task(
        dataset=units.make_samples(units.load_atomic_once(folder)),
        solver=predict_steps(folder, agent, images),
        scorer=atomic_steps(similarity or choose_similarity(current_settings().scoring)),
    )


@solver
def use_tools(
    data: str, agent: str = DEFAULT_AGENT, images: Images = "path", max_turns: int = DEFAULT_TURNS
) -> Solver:
    """Let the agent work with the run's tools until it answers."""
    factory, dataset, run_tools = find_agent(agent), units.load_atomic_once(data), RunTools()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = units.open_unit(dataset, entry.id)
        workspace = units.open_workspace(dataset, entry, state.epoch)
        setup, limits = units.make_setup(dataset, images), current_loop_limits(max_turns)
        replays = agent in NEED_REFERENCES
        if replays:  # with exactly the turns of its reference
            setup = replace(setup, references={entry.id: entry.steps})
            limits = LoopLimits(max_turns=len(entry.steps))
        async with run_tools.for_unit(entry.id, state.epoch, entry.offered, workspace) as tools:
            source = PlaceholderImages(tools.source) if replays else tools.source
            dialogue = await work_on(
                entry, factory(setup), source, workspace, tools=tools.offered, limits=limits
            )
        unit.steps = dialogue.trace
        unit.calls = tuple(dialogue.calls)
        unit.stops = tuple(dialogue.stops)
        state.messages = dialogue.messages
        return state

    return units.seal(dataset, solve)


@solver
def predict_steps(data: str, agent: str = DEFAULT_AGENT, images: Images = "path") -> Solver:
    """Ask the agent for every assistant turn of the reference, all turns at once."""
    factory, dataset = find_agent(agent), units.load_atomic_once(data)
    files = list_dataset_files(dataset.tasks.values())

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = units.open_unit(dataset, entry.id)
        references = {entry.id: entry.steps} if agent in NEED_REFERENCES else {}
        setup = replace(units.make_setup(dataset, images), known_files=files, references=references)
        decide, tools = factory(setup), units.list_step_tools(dataset, entry, agent)
        histories = make_step_histories(entry)
        decisions = list(await collect(*(decide(history, tools) for history in histories)))
        # A turn of the reference is a single step, which the first call is compared with.
        unit.steps = tuple(
            one.step.model_copy(update={"others": len(one.more)}) if one.more else one.step
            for one in decisions
        )
        unit.stops = tuple(one.stop for one in decisions if one.stop is not None)
        state.messages = _show_decisions(entry, decisions)
        return state

    return units.seal(dataset, solve)


def _show_decisions(entry: AtomicTask, decisions: list[Decision]) -> list[ChatMessage]:
    """Return the expected and actual turns as messages, for people who read the log."""
    messages: list[ChatMessage] = [ChatMessageUser(content=entry.request)]
    pairs = zip(reference_steps(entry), decisions, strict=True)
    for number, (expected, decision) in enumerate(pairs, start=1):
        heading = f"Turn {number} of {len(decisions)}. Expected: {format_step(expected)}"
        messages.append(ChatMessageUser(content=heading))
        thought = f"{decision.thought}\n\n" if decision.thought else ""
        messages.append(ChatMessageAssistant(content=f"{thought}{format_step(decision.step)}"))
    return messages
