"""Episodes of gta-bench as a resources server of NeMo Gym, for its agent `gymnasium_agent`."""

from collections.abc import Awaitable, Callable
from typing import Any

from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.openai_utils import NeMoGymResponse
from pydantic import Field, PrivateAttr
from resources_servers.gymnasium import GymnasiumServer, extract_text

from gta_bench.errors import UsageError
from gta_bench.rl.chat import ChatCall, ChatEpisode, list_facts
from gta_bench.rl.environment import Environment
from gta_bench.rl.options import EpisodeMaker, read_options

__all__ = ["GTAServer", "GTAServerConfig"]


class GTAServerConfig(BaseResourcesServerConfig):
    """`episodes` are the options of the episodes, such as `families`."""

    episodes: dict[str, Any] = Field(default_factory=dict)


class GTAServer(GymnasiumServer):
    """Starts the episode that a row names by its `seed` or `task`, and takes each reply."""

    config: GTAServerConfig
    _make: Callable[[], Awaitable[Environment]] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the options when the server starts."""
        super().model_post_init(context)
        self._make = EpisodeMaker(read_options(self.config.episodes)).make

    async def reset(
        self, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, dict[str, Any]]:
        """Start an episode and return its request."""
        await self.close_session(session_id)
        episode = ChatEpisode(await self._make())
        start = await episode.start(seed=metadata.get("seed"), task=metadata.get("task"))
        self.session_state[session_id] = episode
        return start.prompt, list_facts(start.info)

    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """Make the calls of a reply, or take its text as the answer."""
        episode = self.session_state.get(session_id)
        if episode is None:
            raise UsageError("No episode is running: call /reset first.")
        made = [item for item in action.output if item.type == "function_call"]
        turn = await episode.take(
            [ChatCall(call.name, call.arguments) for call in made], extract_text(action)
        )
        outputs = [
            {"call_id": call.call_id, "output": result}
            for call, result in zip(made, turn.results, strict=True)
        ]
        info = list_facts(turn.info) | {"tool_outputs": outputs}
        return None, turn.reward, turn.terminated, turn.truncated, info

    async def close_session(self, session_id: str | None) -> None:
        """End an episode and remove its folder."""
        episode = self.session_state.get(session_id)
        if episode is not None:
            episode.close()
        await super().close_session(session_id)
