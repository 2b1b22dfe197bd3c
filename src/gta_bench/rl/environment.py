"""Episodes on the tasks of a dataset, with `reset`, `step` and a reward for each action.

The caller brings the policy; no model and no evaluation engine is needed. Every built-in agent is a
policy, too: `decision = await decide(*observation)`, then `await environment.step(decision.step)`.
"""

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from gta_bench.agents.calling import TOOL_ERROR, TaskWork, call_tool
from gta_bench.agents.contract import DecidedStep, History, RefusedTurn
from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import Dataset
from gta_bench.errors import ToolError, ToolUnavailable, UsageError, join_first
from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.strict.steps import compute_step_reward
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import AnswerTurn, UserTurn
from gta_bench.records.run import DEFAULT_TURNS, DatasetName
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, StepError
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.redaction import Redactor
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.offering import list_offered_tools, list_own_tools
from gta_bench.tools.source import ToolSource

_Task = AtomicTask | WorkflowTask
Sources = Callable[[str], ToolSource]


class Observation(NamedTuple):
    """What a policy sees: the task's files, the turns so far, and the tools that it may call."""

    history: History
    tools: tuple[ToolSpec, ...]


class Moment(NamedTuple):
    """What a reward is computed from: the action, and everything that was done so far.

    `position` is the number of actions before this one; `done` is True for the last one.
    """

    task: _Task
    position: int
    action: DecidedStep
    work: TaskWork
    workspace: Workspace
    done: bool


class Reward(NamedTuple):
    """The reward of an action; `parts` has the score of each leaf, 0 to 1.

    `value` is None if a judge gave no score; drop such an episode.
    """

    value: float | None
    parts: Mapping[str, float] = {}


class Rewards(Protocol):
    """Computes the reward of an action; the rewards of an episode add up to 0 to 1."""

    async def __call__(self, moment: Moment) -> Reward: ...


class Transition(NamedTuple):
    """The result of an action; `terminated`: the policy answered; `truncated`: no turn is left."""

    observation: Observation
    reward: Reward
    terminated: bool
    truncated: bool


class Environment:
    """Runs one episode at a time; make one environment for each concurrent episode.

    `sources` returns the tools for a task. Workspaces are created below `folder`.

    >>> import asyncio, tempfile
    >>> from pathlib import Path
    >>> from gta_bench.datasets.atomic import load_atomic
    >>> from gta_bench.demo import ATOMIC
    >>> from gta_bench.metrics.similarity import exact_or_half
    >>> from gta_bench.records.steps import AnswerStep
    >>> from gta_bench.tape.reference import write_reference_tape
    >>> async def play(folder):
    ...     dataset = load_atomic(ATOMIC)
    ...     write_reference_tape(dataset, folder / "tape")
    ...     tools = replay_tape(Tape.open(folder / "tape"), "atomic")
    ...     rewards = step_rewards(exact_or_half)
    ...     environment = Environment(dataset, tools, rewards, folder=folder)
    ...     await environment.reset(seed=1)
    ...     transition = await environment.step(AnswerStep(content="I do not know."))
    ...     await environment.close()
    ...     return transition.terminated
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(play(Path(folder)))
    True
    """

    def __init__(
        self,
        dataset: Dataset,
        sources: Sources,
        rewards: Rewards,
        *,
        folder: Path,
        max_steps: int = DEFAULT_TURNS,
    ) -> None:
        self._dataset = dataset
        self._sources = sources
        self._rewards = rewards
        self._folder = folder
        self._max_steps = max_steps
        self._random = random.Random()
        self._episode: _Episode | None = None

    async def reset(self, *, seed: int | None = None, task: str | None = None) -> Observation:
        """Start an episode on `task`, or on a random task.

        Without a seed, the random sequence of the last seed continues.
        """
        await self.close()
        if seed is not None:
            self._random.seed(seed)
        tasks = self._dataset.tasks
        name = self._random.choice(list(tasks)) if task is None else task
        if name not in tasks:
            raise UsageError(
                f"The dataset has no task {name!r}. Its tasks: {join_first([*tasks])}."
            )
        entry = tasks[name]
        files = {item.path: self._dataset.root / item.source for item in entry.attachments}
        root = self._folder / name
        if root.is_dir():  # left over from an episode that was killed
            remove_tree(root)
        workspace = Workspace.create(root, files, follow_links=True)
        source = self._sources(name)
        tools = tuple(list_offered_tools(list_own_tools(self._dataset, entry), source.specs()))
        work = TaskWork([UserTurn(content=entry.request)])
        self._episode = _Episode(entry, source, tools, workspace, work)
        return self._episode.observation(last=self._max_steps == 1)

    async def step(self, action: DecidedStep) -> Transition:
        """Take an action; a mistake of the policy is shown to it and uses up the turn."""
        episode = self._episode
        if episode is None or episode.done:
            raise UsageError("No episode is running: call reset() first.")
        position, taken = episode.position, await episode.take(action)
        terminated = isinstance(action, AnswerStep)
        truncated = not terminated and episode.position >= self._max_steps
        episode.done = terminated or truncated
        moment = Moment(
            episode.task, position, taken, episode.work, episode.workspace, episode.done
        )
        reward = await self._rewards(moment)
        observation = episode.observation(last=episode.position + 1 >= self._max_steps)
        return Transition(observation, reward, terminated, truncated)

    async def close(self) -> None:
        """End the episode and remove its workspace."""
        if self._episode is not None:
            remove_tree(self._episode.workspace.root)
            self._episode = None


@dataclass
class _Episode:
    """One running task."""

    task: _Task
    source: ToolSource
    tools: tuple[ToolSpec, ...]
    workspace: Workspace
    work: TaskWork
    position: int = 0
    done: bool = False

    def observation(self, *, last: bool) -> Observation:
        # Every turn is already a record, so nothing needs to be validated again.
        history = History.model_construct(
            task=self.task.id,
            attachments=self.task.attachments,
            turns=tuple(self.work.turns),
            mode="end-to-end",
            last=last,
        )
        return Observation(history, self.tools)

    async def take(self, action: DecidedStep) -> DecidedStep:
        """Take the action and return it, with the error if a tool rejected the call.

        Something that is missing here, such as a reply on the tape, is no error of the action.
        """
        self.position += 1
        match action:
            case AnswerStep():
                self.work.steps.append(action)
                self.work.turns.append(AnswerTurn(content=action.content))
            case MalformedStep(content=content, reason=reason):
                self._reject(action, content, reason)
            case CallStep(error=StepError(message=message)):
                self._reject(action, "", message)
            case CallStep(arguments=arguments) if not isinstance(arguments, dict):
                error = StepError(type=TOOL_ERROR, message="The arguments are not an object.")
                action = action.model_copy(update={"error": error})
                self._reject(action, "", error.message)
            case CallStep():
                with suppress(ToolUnavailable):
                    try:
                        await call_tool(self.work, action, self.source, self.workspace)
                    except ToolError as exc:
                        error = StepError(type=TOOL_ERROR, message=str(exc))
                        return action.model_copy(update={"error": error})
        return action

    def _reject(self, step: MalformedStep | CallStep, reply: str, message: str) -> None:
        self.work.steps.append(step)
        self.work.turns.append(RefusedTurn(reply=reply, feedback=message))


def replay_tape(tape: Tape, dataset: DatasetName) -> Sources:
    """Return sources that replay a tape, so that no tool, key, GPU or network is needed."""
    redactor = Redactor({})
    return lambda task: TapedTools(tape, TapeUnit(dataset, task, 1), "replay", redactor)


def step_rewards(similarity: SimilarityFunction) -> Rewards:
    """Return GTA-Atomic's dense reward: every action against the reference's step.

    The reference's own actions add up to 1; an empty reply is worth nothing.
    """

    async def reward(moment: Moment) -> Reward:
        assert isinstance(moment.task, AtomicTask), "GTA-Workflow has no reference steps"
        value = compute_step_reward(
            moment.task, moment.position, moment.action, similarity=similarity
        )
        return Reward(value)

    return reward
