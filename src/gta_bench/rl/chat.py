"""An environment for models that chat and call functions, as RL frameworks drive them.

The texts are those of the agent `toolcalling`, so that a model is trained as it is evaluated.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from gta_bench.agents.calling import (
    ARGS_ERROR,
    clean_text,
    deduplicate_tools,
    make_recordable,
    reject_call,
    remove_thinking,
)
from gta_bench.agents.contract import HistoryTurn, RefusedTurn, files_text, reply_text
from gta_bench.agents.prompts import render
from gta_bench.confine.files import remove_tree
from gta_bench.errors import EnvironmentProblem
from gta_bench.records.dialogue import ReplyTurn, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec
from gta_bench.rl.environment import Environment, Info, Observation, Transition
from gta_bench.serving.wire import input_schema

OVER: Final = "The call was not made, because no turn was left."


class ChatCall(NamedTuple):
    """A call of a reply; its arguments are an object, or the JSON text of one."""

    name: str
    arguments: object


class ChatFunction(NamedTuple):
    """A tool as chat APIs describe it; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class ChatStart(NamedTuple):
    """What a model sees first, and the info for the trainer."""

    system: str
    prompt: str
    functions: tuple[ChatFunction, ...]
    info: Info


class ChatTurn(NamedTuple):
    """The outcome of a reply: the result of each call in order, and the rewards of all, added up.

    `info` is about the last action of the reply.
    """

    results: tuple[str, ...]
    reward: float
    terminated: bool
    truncated: bool
    info: Info

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


class ChatEpisode:
    """Plays an environment by replies of a chat model: calls, or a text that is the answer.

    >>> import asyncio, tempfile
    >>> from pathlib import Path
    >>> from gta_bench.demo import ATOMIC
    >>> from gta_bench.rl.options import EpisodeOptions, EpisodeMaker
    >>> async def play(folder: str) -> None:
    ...     maker = EpisodeMaker(
    ...         EpisodeOptions(data=str(ATOMIC), similarity="exact-or-half", folder=folder)
    ...     )
    ...     episode = ChatEpisode(await maker.make())
    ...     start = await episode.start(task="receipt")
    ...     print([function.name for function in start.functions][:2])
    ...     call = ChatCall("Calculator", '{"expression": "3.20 + 6.75 + 2.90 + 2.15"}')
    ...     print((await episode.take([call])).results)
    ...     print((await episode.take([], "You have to pay 15.00.")).reward)
    ...     episode.close()
    ...     await maker.close()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(play(folder))
    ['OCR', 'Calculator']
    ('15.0',)
    1.0
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._turns = 0

    async def start(self, *, seed: int | None = None, task: str | None = None) -> ChatStart:
        """Start an episode, as `Environment.reset` does."""
        observation, info = await self._environment.reset(seed=seed, task=task)
        self._turns = len(observation.history.turns)
        return ChatStart(
            render("toolcalling.md"),
            _write_prompt(observation),
            tuple(_describe(tool) for tool in deduplicate_tools(observation.tools)),
            info,
        )

    async def take(self, calls: Sequence[ChatCall], text: str = "") -> ChatTurn:
        """Make the calls of a reply in order; without any, its text is the answer.

        Each call is one action. An episode without a score raises EnvironmentProblem, because
        frameworks would count it as 0: drop it.
        """
        if not calls:
            answer = AnswerStep(content=remove_thinking(clean_text(text or "")))
            made = await self._environment.step(answer)
            return ChatTurn((), _need_reward(made), made.terminated, made.truncated, made.info)
        results: list[str] = []
        total = 0.0
        for call in calls:
            made = await self._environment.step(_read_call(call))
            turns = made.observation.history.turns
            results.append(_write_result(turns[self._turns :]))
            self._turns = len(turns)
            total += _need_reward(made)
            if made.truncated:
                break
        results += [OVER] * (len(calls) - len(results))
        return ChatTurn(tuple(results), total, made.terminated, made.truncated, made.info)

    def close(self) -> None:
        """End the episode and remove its folder."""
        folder = self._environment.release()
        if folder is not None:
            remove_tree(folder)


def list_facts(info: Info) -> dict[str, Any]:
    """Return the facts for a trainer as plain JSON, without the folder of this machine."""
    facts = {name: info[name] for name in ("task", "steps", "cause", "message")}
    return facts | {"parts": dict(info["parts"])}


def _write_prompt(observation: Observation) -> str:
    request = next(turn for turn in observation.history.turns if isinstance(turn, UserTurn))
    files = files_text(observation.history.attachments)
    return request.content if files is None else f"{files}\n\n{request.content}"


def _describe(tool: ToolSpec) -> ChatFunction:
    return ChatFunction(tool.name, tool.description, input_schema(tool))


def _read_call(call: ChatCall) -> CallStep:
    """Return the action; the environment checks the arguments against the tool."""
    name, arguments = str(call.name or ""), call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as exc:
            message = f"{name[:80]}: the arguments are not JSON: {exc}."
            return reject_call(name, call.arguments, ARGS_ERROR, message)
    if not isinstance(arguments, dict):
        message = f"{name[:80]}: the arguments are not a JSON object."
        return reject_call(name, call.arguments, ARGS_ERROR, message)
    recorded = make_recordable(arguments)
    assert isinstance(recorded, dict)
    return CallStep(name=clean_text(name), arguments=recorded)


def _write_result(turns: Sequence[HistoryTurn]) -> str:
    refused = [turn.feedback for turn in turns if isinstance(turn, RefusedTurn)]
    return refused[-1] if refused else reply_text([t for t in turns if isinstance(t, ReplyTurn)])


def _need_reward(made: Transition) -> float:
    if made.reward is None:
        raise EnvironmentProblem(
            f"Task {made.info['task']} has no score, so the episode has to be dropped: "
            f"{made.info['message']}"
        )
    return made.reward
