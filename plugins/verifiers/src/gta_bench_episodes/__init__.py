"""Episodes of gta-bench in verifiers: forged tasks or GTA-Atomic, with tools in many turns.

The loop runs in this process: replies come from the model of the rollout, and tools, checks and
rewards are those of an environment of gta-bench. Neither a tool server nor a program is started.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from typing import Any

import httpx
import verifiers.v1 as vf
from pydantic import field_validator
from verifiers.v1.clients import ModelContext
from verifiers.v1.runtimes import ProgramResult

from gta_bench.errors import GtaError
from gta_bench.rl.chat import ChatCall, ChatEpisode, ChatStart
from gta_bench.rl.environment import Environment
from gta_bench.rl.options import EpisodeMaker, EpisodeOptions
from gta_bench.tools.http import certificates

__all__ = ["EpisodeHarness", "EpisodeTaskset"]

RESULT = "gta_bench"


class EpisodeData(vf.TaskData):
    """Which episode to play; its request is made when it starts."""

    options: EpisodeOptions
    seed: int | None = None
    task: str | None = None


class EpisodeConfig(vf.TasksetConfig):
    """`episodes` says what to train on: `count` seeds from `first` on.

    Without a count, these are all tasks of `data`, or seeds without end for families.
    """

    episodes: EpisodeOptions = EpisodeOptions()
    count: int | None = None
    first: int = 0

    @field_validator("episodes")
    @classmethod
    def _check(cls, options: EpisodeOptions) -> EpisodeOptions:
        """Have verifiers show a mistake as one of its configuration."""
        try:
            _find_maker(options)
        except GtaError as exc:
            raise ValueError(str(exc)) from exc
        return options


class EpisodeTask(vf.Task[EpisodeData]):
    """One episode."""

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """Return the sum of the rewards of all actions, 0 to 1."""
        return float(_read_result(trace)["reward"])

    @vf.metric
    async def parts(self, trace: vf.Trace) -> dict[str, float]:
        """Return the scores that the last reward consists of, and the number of actions."""
        result = _read_result(trace)
        return {"gta_steps": result["steps"]} | {
            f"gta_{name}": value for name, value in result["parts"].items()
        }


class EpisodeTaskset(vf.Taskset[EpisodeTask, EpisodeConfig]):
    """The episodes of the options; families have no last one."""

    def __init__(self, config: EpisodeConfig) -> None:
        super().__init__(config)
        self._maker = _find_maker(config.episodes)
        self.INFINITE = config.count is None and self._maker.endless

    def load(self) -> Iterator[EpisodeTask]:
        """Yield the episodes in order."""
        for choice in self._maker.list_choices(self.config.count, self.config.first):
            name = choice.task if choice.task is not None else f"seed {choice.seed}"
            # The harness sends the request; verifiers only needs a prompt that is not None.
            data = EpisodeData(
                name=name, prompt="", options=self.config.episodes, **choice._asdict()
            )
            yield EpisodeTask(data, self.config.task)


class EpisodeHarnessConfig(vf.HarnessConfig):
    """There is nothing to set."""


class EpisodeHarness(vf.Harness[EpisodeHarnessConfig]):
    """Plays an episode with the model of the rollout."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> ProgramResult:
        """Play until the answer, or until the model may not reply any more."""
        if not isinstance(data, EpisodeData):
            return ProgramResult(1, "", "The taskset gta-bench-episodes belongs to this harness.")
        episode = ChatEpisode(await find_make(data.options)())
        headers = {"Authorization": f"Bearer {secret}"}
        try:
            start = await episode.start(seed=data.seed, task=data.task)
            # Certificates are read once: that takes longer than an episode.
            async with httpx.AsyncClient(
                base_url=endpoint, headers=headers, timeout=None, verify=certificates()
            ) as model:
                await _play(episode, start, trace, ctx.model, model)
        except (GtaError, httpx.HTTPError) as exc:
            # A reply that a limit of the rollout refuses is no error: verifiers knows the limit.
            if trace.stop_condition is None:
                trace.info.pop(RESULT, None)  # an episode without a score has no reward
            return ProgramResult(1, "", str(exc))
        finally:
            episode.close()
        return ProgramResult(0, "", "")


async def _play(
    episode: ChatEpisode, start: ChatStart, trace: vf.Trace, name: str, model: httpx.AsyncClient
) -> None:
    functions = [{"type": "function", "function": one._asdict()} for one in start.functions]
    messages: list[Mapping[str, Any]] = [
        {"role": "system", "content": start.system},
        {"role": "user", "content": start.prompt},
    ]
    reward, done = 0.0, False
    trace.info[RESULT] = {"task": start.info["task"], "reward": 0.0, "steps": 0, "parts": {}}
    while not done:
        body = {"model": name, "messages": messages, "tools": functions}
        response = await model.post("chat/completions", json=body)
        response.raise_for_status()
        reply = response.json()["choices"][0]["message"]
        calls = reply.get("tool_calls") or []
        turn = await episode.take(
            [ChatCall(call["function"]["name"], call["function"]["arguments"]) for call in calls],
            reply.get("content") or "",
        )
        messages.append(reply)
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(calls, turn.results, strict=True)
        ]
        reward, done = reward + turn.reward, turn.done
        trace.info[RESULT] = {
            "task": turn.info["task"],
            "reward": reward,
            "steps": turn.info["steps"],
            "parts": dict(turn.info["parts"]),
        }


def find_make(options: EpisodeOptions) -> Callable[[], Awaitable[Environment]]:
    """Return what makes an environment with these options."""
    return _find_maker(options).make


@cache
def _find_maker(options: EpisodeOptions) -> EpisodeMaker:
    return EpisodeMaker(options)


def _read_result(trace: vf.Trace) -> dict[str, Any]:
    result = trace.info.get(RESULT)
    if result is None:
        raise ValueError("The episode was not played: leave out --env.agent.harness.id.")
    return dict(result)
