"""An episode at a time: a task, its tools and its files, one action after the other.

No model and no evaluation engine is needed: whoever trains brings the policy. Every agent of ours
is one, too: `decision = await decide(*observation)`, then `await environment.step(decision.step)`.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from gta_bench.agents.calling import TOOL_ERROR, TaskWork, call_tool
from gta_bench.agents.contract import DecidedStep, History, RefusedTurn
from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import Dataset
from gta_bench.errors import ToolError, ToolUnavailable, UsageError
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.dialogue import AnswerTurn, UserTurn
from gta_bench.records.run import DEFAULT_TURNS, DatasetName
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, StepError
from gta_bench.records.tools import ToolSpec
from gta_bench.records.workflow import WorkflowTask
from gta_bench.redaction import Redactor
from gta_bench.tape.source import TapedTools, TapeUnit
from gta_bench.tape.storage import Tape
from gta_bench.tools.offering import offered_tools, own_tools
from gta_bench.tools.source import ToolSource

_Task = AtomicTask | WorkflowTask
Sources = Callable[[str], ToolSource]


class Observation(NamedTuple):
    """What a policy sees: the task's files and the turns so far, and the tools it may call."""

    history: History
    tools: tuple[ToolSpec, ...]


class Moment(NamedTuple):
    """What a reward is computed from: the action that was taken, and all that was done so far.

    `position` counts the actions before this one; `done` marks the last of the episode.
    """

    task: _Task
    position: int
    action: DecidedStep
    work: TaskWork
    workspace: Workspace
    done: bool


class Reward(NamedTuple):
    """`value` is None where a judge gave no score: such an episode says nothing and is dropped.

    `parts` are the leaves that it was made of, 0 to 1 each.
    """

    value: float | None
    parts: Mapping[str, float] = {}


class Rewards(Protocol):
    """What an action is worth. All actions of an episode together are worth 0 to 1."""

    async def __call__(self, moment: Moment) -> Reward: ...


class Transition(NamedTuple):
    """What an action led to; `terminated`: the policy answered; `truncated`: its turns are up."""

    observation: Observation
    reward: Reward
    terminated: bool
    truncated: bool


class Environment:
    """Episodes on the tasks of a dataset. Make as many environments as episodes run at once.

    `sources` gives the tools of an episode by its task. `folder` is where workspaces are made.
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
        self._dice = random.Random()
        self._episode: _Episode | None = None

    async def reset(self, *, seed: int | None = None, task: str | None = None) -> Observation:
        """Begin an episode: on that task, else on one that the seed chooses.

        Without a seed the choice goes on from the last seed that was given.
        """
        await self.close()
        if seed is not None:
            self._dice.seed(seed)
        name = self._dice.choice(list(self._dataset.tasks)) if task is None else task
        if name not in self._dataset.tasks:
            raise UsageError(f"The dataset has no task {name!r}.")
        entry = self._dataset.tasks[name]
        files = {item.path: self._dataset.root / item.source for item in entry.attachments}
        place = self._folder / name
        if place.is_dir():  # of an episode that was killed
            remove_tree(place)
        workspace = Workspace.create(place, files, follow_links=True)
        source = self._sources(name)
        tools = tuple(offered_tools(own_tools(self._dataset, entry), source.specs()))
        work = TaskWork([UserTurn(content=entry.request)])
        self._episode = _Episode(entry, source, tools, workspace, work)
        return self._episode.observation(last=self._max_steps == 1)

    async def step(self, action: DecidedStep) -> Transition:
        """Take an action; what a policy does wrong is told to it and costs it the turn."""
        episode = self._episode
        if episode is None or episode.done:
            raise UsageError("No episode is under way: call reset() first.")
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
        """Remove the workspace of the episode."""
        if self._episode is not None:
            remove_tree(self._episode.workspace.root)
            self._episode = None


class _Episode:
    """One task under way."""

    def __init__(
        self,
        task: _Task,
        source: ToolSource,
        tools: Sequence[ToolSpec],
        workspace: Workspace,
        work: TaskWork,
    ) -> None:
        self.task = task
        self.source = source
        self.tools = tuple(tools)
        self.workspace = workspace
        self.work = work
        self.position = 0
        self.done = False

    def observation(self, *, last: bool) -> Observation:
        # Every turn is a record already, so nothing is validated a second time.
        history = History.model_construct(
            task=self.task.id,
            attachments=self.task.attachments,
            turns=tuple(self.work.turns),
            mode="end-to-end",
            last=last,
        )
        return Observation(history, self.tools)

    async def take(self, action: DecidedStep) -> DecidedStep:
        """Do it, and say what it came to: a call that a tool refused has that as its error.

        What is missing here, a reply on the tape above all, is no fault of the action.
        """
        self.position += 1
        match action:
            case AnswerStep():
                self.work.steps.append(action)
                self.work.turns.append(AnswerTurn(content=action.content))
            case MalformedStep(content=content, reason=told):
                self._refuse(action, content, told)
            case CallStep(error=StepError(message=told)):
                self._refuse(action, "", told)
            case CallStep(arguments=arguments) if not isinstance(arguments, dict):
                told = "The arguments are not an object."
                action = action.model_copy(
                    update={"error": StepError(type=TOOL_ERROR, message=told)}
                )
                self._refuse(action, "", told)
            case CallStep():
                with suppress(ToolUnavailable):
                    try:
                        await call_tool(self.work, action, self.source, self.workspace)
                    except ToolError as exc:
                        error = StepError(type=TOOL_ERROR, message=str(exc))
                        return action.model_copy(update={"error": error})
        return action

    def _refuse(self, step: MalformedStep | CallStep, reply: str, told: str) -> None:
        self.work.steps.append(step)
        self.work.turns.append(RefusedTurn(reply=reply, told=told))


def taped(tape: Tape, dataset: DatasetName) -> Sources:
    """The tools of every episode from a tape: no tool, key, GPU or network is needed."""
    redactor = Redactor({})
    return lambda task: TapedTools(tape, TapeUnit(dataset, task, 1), "replay", redactor)
