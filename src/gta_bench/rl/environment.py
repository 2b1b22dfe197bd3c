"""Episodes on the tasks of a dataset: `reset`, then `step` with a reward and its causes.

The caller brings the policy; no model and no evaluation engine is needed. Every built-in agent is a
policy, too: `decision = await decide(*observation)`, then `await environment.step(decision.step)`.
"""

import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypedDict

from gta_bench.agents.calling import (
    API_ERROR,
    ARGS_ERROR,
    TOOL_ERROR,
    TaskWork,
    call_tool,
    read_call,
)
from gta_bench.agents.contract import DecidedStep, History, RefusedTurn
from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.errors import (
    NoReferenceReply,
    NotOnTape,
    ToolError,
    ToolUnavailable,
    UsageError,
    join_first,
)
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import AnswerTurn, CallTurn, UserTurn
from gta_bench.records.run import DEFAULT_TURNS, DatasetName
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    StepError,
)
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.redaction import Redactor
from gta_bench.rl.rewards import Moment, Reward, Rewards
from gta_bench.runs.store import StorePath
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.offering import OfferedTools, list_offered_tools, list_own_tools
from gta_bench.tools.source import ToolSource

Sources = Callable[[str], ToolSource]

# Why an action led to nothing. `malformed`, `not_offered`, `wrong_arguments` and `tool_failed` are
# mistakes of the policy. `not_on_tape` and `unavailable` are limits of the tools. `no_reply` is a
# call of the reference that has no reply in it. `unscored` means that a judge gave no score.
StepCause = Literal[
    "malformed",
    "not_offered",
    "wrong_arguments",
    "tool_failed",
    "not_on_tape",
    "unavailable",
    "no_reply",
    "unscored",
]

_REFUSALS: Final[Mapping[str, StepCause]] = {
    API_ERROR: "not_offered",
    ARGS_ERROR: "wrong_arguments",
}


class Observation(NamedTuple):
    """What a policy sees: the task's files, the turns so far, and the tools that it may call."""

    history: History
    tools: tuple[ToolSpec, ...]


class Info(TypedDict):
    """Facts about an action for the trainer; the policy does not see them.

    `steps` is the number of actions so far, `folder` has the task's files and the outputs of tools
    under the paths of the history, until the environment is reset or closed. `cause` and `message`
    say what was wrong with the action, and `parts` are the scores that the reward consists of.
    """

    task: str
    steps: int
    folder: Path
    cause: StepCause | None
    message: str
    parts: Mapping[str, float]


class EpisodeStart(NamedTuple):
    """The first observation of an episode."""

    observation: Observation
    info: Info


class Transition(NamedTuple):
    """The result of an action; `terminated`: the policy answered; `truncated`: no turn is left.

    `reward` is None if a judge gave no score (`info["cause"]` is "unscored"); drop such an episode.
    """

    observation: Observation
    reward: float | None
    terminated: bool
    truncated: bool
    info: Info


class TaskSource(Protocol):
    """A dataset without end: makes a task in a folder when an episode begins."""

    def draw(self, dice: random.Random, folder: Path) -> Dataset:
        """Make a random task, as a dataset of one."""

    def find(self, name: str, folder: Path) -> Dataset:
        """Make the task with that name, as a dataset of one."""


class Environment:
    """Runs one episode at a time; make one environment for each concurrent episode.

    `sources` returns the tools for a task. Each episode has a new folder below `folder`, so that
    environments, also in several processes, can share it. Between episodes an environment can be
    pickled and copied, if its sources and rewards can.

    >>> import asyncio, tempfile
    >>> from pathlib import Path
    >>> from gta_bench import Settings
    >>> from gta_bench.datasets.atomic import load_atomic
    >>> from gta_bench.demo import ATOMIC
    >>> from gta_bench.metrics.similarity import exact_or_half
    >>> from gta_bench.records.steps import AnswerStep, CallStep
    >>> from gta_bench.rl.rewards import outcome_rewards
    >>> from gta_bench.tools.contract import Equipment
    >>> from gta_bench.tools.toolbox import Toolbox
    >>> async def play(folder: Path) -> None:
    ...     toolbox = Toolbox(Equipment(Settings()))
    ...     rewards = outcome_rewards(exact_or_half)
    ...     environment = Environment(
    ...         load_atomic(ATOMIC), lambda task: toolbox, rewards, folder=folder
    ...     )
    ...     observation, info = await environment.reset(task="receipt")
    ...     for action in (
    ...         CallStep(name="Calculator", arguments={"expression": "3.20 + 6.75 + 2.90 + 2.15"}),
    ...         AnswerStep(content="You have to pay 15.00."),
    ...     ):
    ...         observation, reward, terminated, truncated, info = await environment.step(action)
    ...         print(reward, terminated, truncated)
    ...     await environment.close()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(play(Path(folder)))
    0.0 False False
    1.0 True False
    """

    def __init__(
        self,
        dataset: Dataset | TaskSource,
        sources: Sources,
        rewards: Rewards,
        *,
        folder: Path,
        max_steps: int = DEFAULT_TURNS,
    ) -> None:
        if not _is_whole(max_steps, least=1):
            raise UsageError(f"max_steps must be a whole number from 1 on, not {max_steps!r:.80}.")
        self._dataset = dataset
        self._sources = sources
        self._rewards = rewards
        self._folder = folder
        self._max_steps = max_steps
        self._random = random.Random()
        self._episode: _Episode | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._episode is not None and not self._episode.done:
            raise UsageError(
                "An environment cannot be pickled or copied during an episode: end the episode or "
                "call close() first."
            )
        # The folder of an episode that ended belongs to this environment only.
        return {**vars(self), "_episode": None}

    async def reset(self, *, seed: int | None = None, task: str | None = None) -> EpisodeStart:
        """Start an episode on `task`, or on a random task.

        Without a seed, the random sequence of the last seed continues. The folder of the last
        episode is removed.
        """
        check_seed(seed)
        if task is not None and not isinstance(task, str):
            raise UsageError(f"A task is named by a text or None, not {task!r:.80}.")
        await self.close()
        if seed is not None:
            self._random.seed(seed)
        self._folder.mkdir(parents=True, exist_ok=True)
        if isinstance(self._dataset, AtomicDataset | WorkflowDataset):
            self._episode = self._begin(self._dataset, task)
        else:
            # The workspace has its own copies of the files.
            with tempfile.TemporaryDirectory(dir=self._folder) as made:
                place = Path(made)
                dataset = (
                    self._dataset.draw(self._random, place)
                    if task is None
                    else self._dataset.find(task, place)
                )
                self._episode = self._begin(dataset, task)
        return EpisodeStart(
            self._episode.observe(last=self._max_steps == 1), self._episode.inform()
        )

    def _begin(self, dataset: Dataset, task: str | None) -> "_Episode":
        tasks = dataset.tasks
        name = self._random.choice(list(tasks)) if task is None else task
        if name not in tasks:
            raise UsageError(
                f"The dataset has no task {name!r}. Its tasks: {join_first([*tasks])}."
            )
        entry = tasks[name]
        files = {item.path: dataset.root / item.source for item in entry.attachments}
        root = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder))
        workspace = Workspace.create(root, files, follow_links=True)
        source = self._sources(name)
        tools = tuple(list_offered_tools(list_own_tools(dataset, entry), source.specs()))
        work = TaskWork([UserTurn(content=entry.request)])
        return _Episode(entry, OfferedTools(source, tools), tools, workspace, work)

    async def step(self, action: DecidedStep) -> Transition:
        """Take an action; a mistake of the policy is shown to it and uses up the turn.

        After any other exception than a UsageError about the action, the episode is over.
        """
        check_action(action)
        episode = self._episode
        if episode is None or episode.done:
            raise UsageError("No episode is running: call reset() first.")
        # An action that raises was taken in part, so that nothing after it could be rewarded.
        episode.done = True
        problem = await episode.take(action)
        terminated = isinstance(action, AnswerStep)
        truncated = not terminated and len(episode.actions) >= self._max_steps
        done = terminated or truncated
        reward = await self._rewards(
            Moment(episode.task, tuple(episode.actions), episode.work, episode.workspace, done)
        )
        if reward.value is None:
            problem = _Problem("unscored", reward.message)
        observation = episode.observe(last=len(episode.actions) + 1 >= self._max_steps)
        info = episode.inform(problem, reward)
        episode.done = done
        return Transition(observation, reward.value, terminated, truncated, info)

    async def close(self) -> None:
        """End the episode and remove its folder."""
        folder = self.release()
        if folder is not None:
            remove_tree(folder)

    def release(self) -> Path | None:
        """End the episode and return its folder, which the caller removes; None without one."""
        episode, self._episode = self._episode, None
        return episode.workspace.root if episode and episode.workspace.root.exists() else None


def check_action(action: object) -> None:
    """Raise UsageError unless this is an action."""
    if not isinstance(action, CallStep | AnswerStep | MalformedStep):
        raise UsageError(
            f"An action is a CallStep, an AnswerStep or a MalformedStep, not {action!r:.80}."
        )


def check_seed(seed: object) -> None:
    """Raise UsageError unless this is a seed or None."""
    if seed is not None and not _is_whole(seed, least=0):
        raise UsageError(f"A seed is a whole number from 0 on or None, not {seed!r:.80}.")


def _is_whole(value: object, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


class _Problem(NamedTuple):
    """What was wrong with an action."""

    cause: StepCause
    message: str


@dataclass
class _Episode:
    """One task; `done` is True while an action is taken and after the last one."""

    task: AtomicTask | WorkflowTask
    source: ToolSource
    tools: tuple[ToolSpec, ...]
    workspace: Workspace
    work: TaskWork
    actions: list[DecidedStep] = field(default_factory=list)
    done: bool = False

    def observe(self, *, last: bool) -> Observation:
        # Every turn is already a record, so nothing needs to be validated again. Arguments are the
        # only part of a turn that can be changed, so the policy gets its own.
        history = History.model_construct(
            task=self.task.id,
            attachments=self.task.attachments,
            turns=tuple(
                turn.model_copy(deep=True) if isinstance(turn, CallTurn) else turn
                for turn in self.work.turns
            ),
            mode="end-to-end",
            last=last,
        )
        return Observation(history, self.tools)

    def inform(self, problem: "_Problem | None" = None, reward: Reward | None = None) -> Info:
        return Info(
            task=self.task.id,
            steps=len(self.actions),
            folder=self.workspace.root,
            cause=None if problem is None else problem.cause,
            message="" if problem is None else problem.message,
            parts={} if reward is None else reward.parts,
        )

    async def take(self, action: DecidedStep) -> "_Problem | None":
        """Take the action, add it to the list as it is rewarded, and return its problem."""
        match action:
            case AnswerStep(content=content):
                self.actions.append(action)
                self.work.steps.append(action)
                self.work.turns.append(AnswerTurn(content=content))
                return None
            case MalformedStep(content=content, reason=reason):
                self.actions.append(action)
                self.work.steps.append(action)
                self.work.turns.append(RefusedTurn(reply=content, feedback=reason))
                return _Problem("malformed", reason)
            case CallStep():
                return await self._call(action)

    async def _call(self, action: CallStep) -> "_Problem | None":
        """Make a call; without a reply, the action gets the error of the problem.

        Except if the reference makes the same call and has no reply, either.
        """
        if action.error is None:
            read = read_call(action.name, action.arguments, self.tools)
            # Wrong arguments are left to the source: a tape may have a reply to a reference's call.
            action = action.model_copy(deep=True) if read.error is not None else read
        try:
            await call_tool(self.work, action, self.source, self.workspace)
        except (ToolError, ToolUnavailable) as exc:
            problem = _Problem(_find_cause(exc, self.work.steps[-1]), str(exc))
            if problem.cause != "no_reply":
                error = StepError(type=TOOL_ERROR, message=problem.message)
                action = action.model_copy(update={"error": error})
            self.actions.append(action)
            return problem
        self.actions.append(action)
        return None


def _find_cause(exc: ToolError | ToolUnavailable, last: PredictedStep) -> StepCause:
    """Return why a call gave no result; `last` is its step, with the error that was recorded."""
    if isinstance(exc, NotOnTape):
        return "not_on_tape"
    if isinstance(exc, NoReferenceReply):
        return "no_reply"
    if isinstance(exc, ToolUnavailable):
        return "unavailable"
    error = last.error if isinstance(last, CallStep) else None
    return "tool_failed" if error is None else _REFUSALS.get(error.type, "tool_failed")


def replay_tape(tape: Tape, dataset: DatasetName) -> Sources:
    """Return sources that replay a tape, so that no tool, key, GPU or network is needed.

    They can be pickled; the process that unpickles them opens the tape again.
    """
    return _TapeSources(tape, dataset)


@dataclass(frozen=True)
class _TapeSources:
    tape: Tape
    dataset: DatasetName

    def __call__(self, task: str) -> TapedTools:
        return TapedTools(self.tape, TapeUnit(self.dataset, task, 1), "replay", Redactor({}))

    def __reduce__(self) -> tuple[Callable[[StorePath, DatasetName], Sources], Any]:
        return _open_sources, (self.tape.folder, self.dataset)


def _open_sources(folder: StorePath, dataset: DatasetName) -> Sources:
    return replay_tape(Tape.open(folder), dataset)
