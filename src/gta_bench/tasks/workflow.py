"""`gta_bench/workflow`: GTA-Workflow, where the agent works with real tools and delivers files.

If Inspect has a model for the role `judge`, the task is scored inside the evaluation.
`gta run workflow` judges afterwards instead, from what the run stores.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import get_model, model_roles
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.agents.catalog import DEFAULT_AGENT, NEED_REFERENCES
from gta_bench.agents.contract import History, read_turns
from gta_bench.agents.loop import Dialogue, dump_messages, load_messages, work_on
from gta_bench.agents.toolcalling import make_earlier_messages
from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.errors import UsageError
from gta_bench.judging.options import judge_options
from gta_bench.judging.run_evidence import RunEvidence
from gta_bench.metrics.strict.workflow import pool
from gta_bench.metrics.table import JUDGED
from gta_bench.metrics.workflow_scores import task_score
from gta_bench.records.files import Deliverable
from gta_bench.records.run import DEFAULT_TURNS, Images
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.records.workflow import WorkflowTask
from gta_bench.records.workflow_scores import TaskScore
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.runs.samples import UnitStore, read_task, read_unit_data
from gta_bench.tasks import context, units
from gta_bench.tasks.judging import ROLE, judge_and_store, open_judge
from gta_bench.tasks.run_tools import RunTools
from gta_bench.tasks.scorers import UNIT
from gta_bench.tools.offering import list_own_tools

# Copied from the previous round for a unit that is not worked on again. How replies ended is left
# out, because it is counted with the model calls of the same round.
CARRIED = ("steps", "calls", "messages", "turns", "deliverables", "inputs", "strays", "states")


@task
def workflow(
    data: str | None = None,
    agent: str = DEFAULT_AGENT,
    images: Images = "path",
    max_turns: int = DEFAULT_TURNS,
) -> Task:
    """GTA-Workflow: open-ended tasks that deliver files, scored by the model role `judge`.

    `data` is the dataset's folder (default: data.workflow of gta.toml), `agent` is one of
    toolcalling, react, react-upstream, silent or `pkg.mod:function`.
    """
    folder = context.locate_dataset(data or context.current_settings().data.workflow)
    return units.make_task(
        dataset=units.make_samples(units.load_workflow_once(folder)),
        solver=deliver(folder, agent, images, max_turns),
        scorer=judged_root(),
    )


@solver
def deliver(
    data: str, agent: str = DEFAULT_AGENT, images: Images = "path", max_turns: int = DEFAULT_TURNS
) -> Solver:
    """Let the agent work until it answers, and store all files that it wrote."""
    check_agent(agent)
    factory = context.find_agent(agent)
    dataset, run_tools = units.load_workflow_once(data), RunTools()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        entry = dataset.tasks[str(state.sample_id)]
        unit = units.open_unit(dataset, entry.id)
        run = context.current_context()
        earlier = None if run is None else run.earlier
        if earlier is not None and (entry.id, state.epoch) not in earlier.words:
            return _carry_over(state, unit, entry, earlier)
        decide = factory(units.make_setup(dataset, images))
        workspace, before = _begin(dataset, entry, state.epoch, earlier)
        own = list_own_tools(dataset, entry)
        opening = run_tools.for_unit(entry.id, state.epoch, own, workspace, states=True)
        async with opening as tools:
            dialogue = await work_on(
                entry,
                decide,
                tools.source,
                workspace,
                tools=tools.offered,
                limits=context.current_loop_limits(max_turns),
                before=before,
            )
            unit.states = await tools.read_states()
        unit.steps = dialogue.trace
        unit.calls = tuple(dialogue.calls)
        unit.stops = tuple(dialogue.stops)
        unit.messages = dump_messages(dialogue.messages)
        await asyncio.to_thread(_store_files, unit, entry, workspace, context.artefact_store())
        state.messages = dialogue.messages
        return state

    return units.seal(dataset, solve)


def check_agent(agent: str) -> None:
    """Reject an agent that needs references, which GTA-Workflow does not have."""
    if agent in NEED_REFERENCES:
        raise UsageError(
            f"Agent {agent!r} replays a reference, and GTA-Workflow has none. "
            "Use `silent` as a baseline without a model."
        )


def _begin(
    dataset: WorkflowDataset, entry: WorkflowTask, epoch: int, earlier: context.Earlier | None
) -> tuple[Workspace, Dialogue | None]:
    """Return a new workspace, or a copy of the previous round's with its dialogue."""
    if earlier is None:
        return units.open_workspace(dataset, entry, epoch), None
    unit = earlier.units[entry.id, epoch]
    messages = load_messages(unit.messages, model=str(get_model()))
    if not messages:  # the form of earlier versions
        history = History(task=entry.id, turns=read_turns(unit.turns))
        messages = make_earlier_messages(history, unit.steps or ())
    before = Dialogue(messages, list(unit.calls))
    before.ask(earlier.words[entry.id, epoch])
    return Workspace.create(_copy_workspace(earlier, entry.id, epoch), {}), before


def _copy_workspace(earlier: context.Earlier, task: str, epoch: int) -> Path:
    """Copy the workspace of the previous round, so that each round has its own."""
    folder = context.workspace_folder(task, epoch)
    if folder.exists():
        remove_tree(folder)
    return Path(
        shutil.copytree(context.unit_folder(earlier.files, task, epoch), folder, symlinks=True)
    )


def _carry_over(
    state: TaskState, unit: UnitStore, entry: WorkflowTask, earlier: context.Earlier
) -> TaskState:
    """Copy the results of a unit that has nothing to fix."""
    carried = earlier.units[entry.id, state.epoch]
    for name in CARRIED:
        setattr(unit, name, getattr(carried, name))
    _copy_workspace(earlier, entry.id, state.epoch)
    state.messages = units.show_trace(entry.request, carried.steps or ())
    return state


def _store_files(
    unit: UnitStore, entry: WorkflowTask, workspace: Workspace, store: ArtefactStore
) -> None:
    """Store the files that the system wrote, and those that it was given."""
    written = workspace.outputs()
    unit.deliverables = tuple(
        store_workspace_file(workspace, store, file.path) for file in written.files
    )
    unit.strays = tuple(written.strays)
    unit.inputs = store_inputs(entry, workspace, store)


def store_inputs(
    entry: WorkflowTask, workspace: Workspace, store: ArtefactStore
) -> tuple[Deliverable, ...]:
    """Store the files that the system was given, and return their names and digests."""
    return tuple(store_workspace_file(workspace, store, item.path) for item in entry.attachments)


def store_workspace_file(workspace: Workspace, store: ArtefactStore, path: str) -> Deliverable:
    """Store a file of a workspace, and return its name and digest."""
    data = workspace.read(path, most_bytes=workspace.quota.input_bytes)
    return store.keep_file(path, data)


@metric
def workflow_rates() -> Metric:
    """Return Root Score, Root SR and Leaf SR over the tasks that have a root score."""

    def pool_scores(scores: list[SampleScore]) -> Value:
        tasks = [TaskScore.model_validate((one.score.metadata or {})[UNIT]) for one in scores]
        settings = context.current_settings().judge
        pooled = pool(
            "all",
            tasks,
            leaf_threshold=settings.leaf_threshold,
            root_threshold=settings.root_threshold,
        )
        rates = {name: getattr(pooled, name) for name in JUDGED}
        return {name: float("nan") if rate is None else rate for name, rate in rates.items()}

    return pool_scores


@scorer(metrics=[workflow_rates()])
def judged_root() -> Scorer:
    """Compute the root score with the model of the role `judge`; no score without that role."""

    async def score(state: TaskState, target: Target) -> Score | None:
        if ROLE not in model_roles():
            return None
        data = read_unit_data(state.store.items())
        unit = WorkflowUnit(
            task=read_task(state.metadata, WorkflowTask),
            epoch=state.epoch,
            trace=data.steps or (),
            calls=data.calls,
            deliverables=data.deliverables,
            inputs=data.inputs,
        )
        settings = context.current_settings()
        options, repeats = judge_options(settings.judge), settings.judge.repeats
        judge = open_judge(get_model(role=ROLE), options, repeats=repeats)
        folder = context.artefact_store().folder.parent
        source = RunEvidence(folder, settings)
        rows = await judge_and_store(folder, unit, judge, source, {}, context.current_spending())
        by_repeat: dict[int, dict[str, VerdictRow]] = {}
        for row in rows:
            by_repeat.setdefault(row.key.repeat, {})[row.key.leaf] = row
        found = task_score(unit, by_repeat, repeats=max(by_repeat, default=1))
        about: dict[str, Any] = {
            UNIT: found.model_dump(mode="json"),
            "verdicts": [row.model_dump(mode="json") for row in rows],
        }
        if found.root is None:
            return Score.unscored(reason="scoring_failed", metadata=about)
        return Score(value=found.root, metadata=about)

    return score
