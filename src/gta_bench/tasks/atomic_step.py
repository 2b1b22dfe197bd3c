"""`gta_bench/atomic_step`: GTA-Atomic step by step, each turn predicted from the reference."""

from functools import cache
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import collect, store_as

from gta_bench.agents.catalog import DEFAULT_AGENT, NEED_REFERENCES, load_agent
from gta_bench.agents.contract import Decide, DecidedStep, Decision, Setup
from gta_bench.agents.history import dataset_files, step_histories
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.model import AtomicDataset, Dataset
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.files import Attachment
from gta_bench.records.run import Images
from gta_bench.records.tools import ToolSpec
from gta_bench.runs.samples import UnitStore
from gta_bench.similarity.catalog import chosen_similarity
from gta_bench.tasks.context import current_published, current_settings, hidden_dataset
from gta_bench.tasks.scorers import atomic_steps
from gta_bench.tasks.sealed import sealed
from gta_bench.tasks.show import step_text


@task
def atomic_step(
    data: str | None = None,
    agent: str = DEFAULT_AGENT,
    images: Images = "path",
    similarity: str | None = None,
) -> Task:
    """GTA-Atomic step by step: InstAcc, ToolAcc, ArgAcc, SummAcc.

    `data` is the dataset's folder (data.atomic of gta.toml unless given), `agent` one of
    toolcalling, react, react-upstream, gold, silent or `pkg.mod:function`.
    """
    folder = hidden_dataset(data or current_settings().data.atomic)
    return Task(
        dataset=atomic_samples(folder),
        solver=predict_steps(folder, agent, images),
        scorer=atomic_steps(similarity or chosen_similarity(current_settings().scoring)),
        # Errored samples stay unscored and the same command runs them again.
        fail_on_error=True,
        continue_on_fail=True,
    )


@solver
def predict_steps(data: str, agent: str = DEFAULT_AGENT, images: Images = "path") -> Solver:
    """Ask the agent for every assistant turn of the reference, all turns at once."""
    factory = load_agent(agent)
    dataset = loaded_dataset(data)
    files = dataset_files(dataset.tasks.values())

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = unit_store(dataset, entry.id)
        decide = factory(
            Setup(
                model=get_model(),
                images=images,
                image_source=lambda attachment: host_file(dataset, attachment),
                published=current_published(),
                known_files=files,
                references={entry.id: entry.steps} if agent in NEED_REFERENCES else {},
            )
        )
        decisions = await _decisions(decide, entry, offered_tools(dataset, entry, agent))
        unit.steps = tuple(_first_step(decision) for decision in decisions)
        unit.stops = tuple(one.stop for one in decisions if one.stop is not None)
        state.messages = _shown(entry, decisions)
        return state

    return sealed(dataset, solve)


async def _decisions(decide: Decide, entry: AtomicTask, tools: list[ToolSpec]) -> list[Decision]:
    histories = step_histories(entry)
    return list(await collect(*(decide(history, tools) for history in histories)))


def _first_step(decision: Decision) -> DecidedStep:
    """What is compared with the reference's turn, which is a single step: the first call."""
    step = decision.step
    others = len(decision.more)
    return step.model_copy(update={"others": others}) if others else step


def offered_tools(dataset: AtomicDataset, entry: AtomicTask, agent: str) -> list[ToolSpec]:
    """The task's own definitions; upstream offers those of toolmeta.json under the same names."""
    if agent == "react-upstream":
        return [dataset.tools.get(name, tool) for name, tool in entry.offered.items()]
    return list(entry.offered.values())


def _shown(entry: AtomicTask, decisions: list[Decision]) -> list[ChatMessage]:
    """The turns as a reader of the log wants them: what was expected, what came."""
    messages: list[ChatMessage] = [ChatMessageUser(content=entry.request)]
    count = len(decisions)
    for number, (expected, decision) in enumerate(
        zip(reference_steps(entry), decisions, strict=True), start=1
    ):
        heading = f"Turn {number} of {count}. Expected: {step_text(expected)}"
        messages.append(ChatMessageUser(content=heading))
        came = step_text(decision.step)
        thought = f"{decision.thought}\n\n" if decision.thought else ""
        messages.append(ChatMessageAssistant(content=f"{thought}{came}"))
    return messages


def atomic_samples(folder: str) -> MemoryDataset:
    """The dataset in that folder as Inspect's samples."""
    tasks = loaded_dataset(folder).tasks.values()
    return MemoryDataset([atomic_sample(entry) for entry in tasks], name="gta-atomic")


def atomic_sample(entry: AtomicTask) -> Sample:
    """A task as Inspect's sample, without its reference (`sealed`)."""
    return Sample(id=entry.id, input=entry.request)


def unit_store(dataset: Dataset, task: str) -> UnitStore:
    """The store of the sample that is being solved, with the digests of its task."""
    unit = store_as(UnitStore)
    unit.digests = task_digests(dataset, task)
    return unit


def host_file(dataset: Dataset, attachment: Attachment) -> str:
    """Where an attachment lies on this machine."""
    return str(dataset.root / attachment.source)


@cache
def loaded_dataset(folder: str) -> AtomicDataset:
    """The dataset in that folder, read once."""
    return load_atomic(Path(folder))
