"""Episodes of gta-bench as an environment of OpenEnv: in process, or served over a WebSocket."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import Field

from gta_bench.errors import GtaError, UsageError
from gta_bench.rl.chat import ChatCall, ChatEpisode, list_facts
from gta_bench.rl.environment import Environment as GTAEpisodes
from gta_bench.rl.options import EpisodeMaker, read_options

__all__ = ["GTAAction", "GTAEnvironment", "GTAObservation", "main"]

Make = Callable[[], Awaitable[GTAEpisodes]]


class GTAAction(Action):
    """A call of `tool`, or the `answer`, which ends the episode."""

    tool: str | None = Field(default=None, description="Name of the tool to call")
    arguments: dict[str, Any] | str = Field(
        default_factory=dict, description="Arguments of the tool, or their JSON text"
    )
    answer: str | None = Field(default=None, description="Final answer; ends the episode")


class GTAObservation(Observation):
    """For the model: `text` is the request at first, then the result of a call.

    `system` and `tools` are set by reset only. `metadata` is for the trainer: the task, the number
    of actions, what was wrong with the action, and the parts of the reward.
    """

    text: str = ""
    system: str = ""
    tools: list[dict[str, Any]] = Field(default_factory=list)


class GTAEnvironment(Environment[GTAAction, GTAObservation, State]):
    """One session: an episode after each reset. `make` returns a new environment of gta-bench.

    Use the coroutines in an event loop, as the server does, and else `reset` and `step`.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, make: Make) -> None:
        super().__init__()
        self._make = make
        self._episode: ChatEpisode | None = None
        self._state = State()
        self._runner: asyncio.Runner | None = None

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str | None = None,
    ) -> GTAObservation:
        """Start an episode: the one of a seed, or one on a named task."""
        if self._episode is None:
            self._episode = ChatEpisode(await self._make())
        start = await self._episode.start(seed=seed, task=task)
        self._state = State(episode_id=episode_id or start.info["task"])
        tools = [function._asdict() for function in start.functions]
        return GTAObservation(
            text=start.prompt, system=start.system, tools=tools, metadata=list_facts(start.info)
        )

    async def step_async(
        self, action: GTAAction, timeout_s: float | None = None, **kwargs: Any
    ) -> GTAObservation:
        """Call the tool, or answer."""
        if self._episode is None:
            raise UsageError("No episode is running: call reset first.")
        if (action.tool is None) == (action.answer is None):
            raise UsageError("An action has either a `tool` or an `answer`.")
        calls = [] if action.tool is None else [ChatCall(action.tool, action.arguments)]
        turn = await self._episode.take(calls, action.answer or "")
        self._state.step_count = turn.info["steps"]
        return GTAObservation(
            text="".join(turn.results),
            done=turn.done,
            reward=turn.reward,
            metadata=list_facts(turn.info) | {"truncated": turn.truncated},
        )

    def reset(self, *args: Any, **kwargs: Any) -> GTAObservation:
        """Start an episode, outside of an event loop."""
        return self._run().run(self.reset_async(*args, **kwargs))

    def step(self, *args: Any, **kwargs: Any) -> GTAObservation:
        """Take an action, outside of an event loop."""
        return self._run().run(self.step_async(*args, **kwargs))

    @property
    def state(self) -> State:
        """The task, unless reset named the episode, and the number of actions."""
        return self._state

    def close(self) -> None:
        """End the episode and remove its folder."""
        if self._episode is not None:
            self._episode.close()
        if self._runner is not None:
            self._runner.close()
        self._episode = self._runner = None

    def _run(self) -> asyncio.Runner:
        self._runner = self._runner or asyncio.Runner()
        return self._runner


def main() -> None:
    """Serve an environment: `gta-openenv '{"families": ["chart"]}'`."""
    parser = argparse.ArgumentParser(prog="gta-openenv", description=main.__doc__)
    parser.add_argument("options", help="options of the episodes, as JSON")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--sessions", type=int, default=8, help="concurrent episodes at most")
    given = parser.parse_args()
    try:
        if not 0 <= given.port <= 65535:
            raise UsageError(f"--port {given.port}: ports are 0 to 65535.")
        maker = EpisodeMaker(read_options(given.options))
    except GtaError as exc:
        sys.exit(f"gta-openenv: {exc}")
    app = create_app(
        lambda: GTAEnvironment(maker.make),
        GTAAction,
        GTAObservation,
        env_name="gta_bench",
        max_concurrent_envs=given.sessions,
    )
    uvicorn.run(app, host=given.host, port=given.port)
