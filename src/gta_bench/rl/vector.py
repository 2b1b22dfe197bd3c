"""Several environments that are stepped together in one event loop."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gta_bench.agents.contract import DecidedStep
from gta_bench.confine.files import remove_tree
from gta_bench.errors import UsageError, format_count
from gta_bench.rl.environment import (
    Environment,
    EpisodeStart,
    Info,
    Observation,
    Transition,
    check_action,
    check_seed,
)

_Value = TypeVar("_Value")


class VectorTransition(NamedTuple):
    """The results of one action in each environment, in the order of the environments.

    An environment whose episode ended was reset: `observations` has the first one of its next
    episode, `ended` the last one of the old episode (else None), and `infos` is about the action.
    The folders of all infos stay until the next `step`, `reset` or `close`.
    """

    observations: list[Observation]
    rewards: list[float | None]
    terminated: list[bool]
    truncated: list[bool]
    infos: list[Info]
    ended: list[Observation | None]


class VectorEnvironment:
    """Steps environments concurrently, so that slow tools and judges of one do not delay others.

    If one of them raises, all episodes are over: call `reset`.
    """

    def __init__(self, environments: Sequence[Environment]) -> None:
        self._environments = tuple(environments)
        if len(set(map(id, self._environments))) < len(self._environments):
            raise UsageError("An environment is listed twice; create one for each episode.")
        # The folders of the episodes that ended in the last step.
        self._ended: list[Path] = []

    async def reset(self, *, seed: int | None = None) -> tuple[list[Observation], list[Info]]:
        """Start an episode in each environment; the seeds are `seed`, `seed + 1` and so on."""
        check_seed(seed)
        self._remove_ended()
        seeds = [None if seed is None else seed + n for n in range(len(self._environments))]
        starts = await self._gather(
            one.reset(seed=own) for one, own in zip(self._environments, seeds, strict=True)
        )
        return [one.observation for one in starts], [one.info for one in starts]

    async def step(self, actions: Sequence[DecidedStep]) -> VectorTransition:
        """Take one action in each environment, and reset those whose episode ends."""
        if len(actions) != len(self._environments):
            wanted = format_count(len(self._environments), "action")
            raise UsageError(f"step() needs {wanted}, one for each environment.")
        for action in actions:
            check_action(action)
        self._remove_ended()
        stepped = await self._gather(
            self._step(one, action) for one, action in zip(self._environments, actions, strict=True)
        )
        return VectorTransition(
            observations=[
                done.observation if start is None else start.observation for done, start in stepped
            ],
            rewards=[done.reward for done, _ in stepped],
            terminated=[done.terminated for done, _ in stepped],
            truncated=[done.truncated for done, _ in stepped],
            infos=[done.info for done, _ in stepped],
            ended=[None if start is None else done.observation for done, start in stepped],
        )

    async def close(self) -> None:
        """End all episodes and remove their folders."""
        self._remove_ended()
        await asyncio.gather(*(one.close() for one in self._environments))

    async def _step(
        self, environment: Environment, action: DecidedStep
    ) -> tuple[Transition, EpisodeStart | None]:
        transition = await environment.step(action)
        if not (transition.terminated or transition.truncated):
            return transition, None
        folder = environment.release()
        if folder is not None:
            self._ended.append(folder)
        return transition, await environment.reset()

    async def _gather(self, works: Iterable[Coroutine[Any, Any, _Value]]) -> list[_Value]:
        """Wait for all, also if one raises; then no environment is ahead of another."""
        done = await asyncio.gather(*works, return_exceptions=True)
        for one in done:
            if isinstance(one, BaseException):
                await self.close()
                raise one
        return [one for one in done if not isinstance(one, BaseException)]

    def _remove_ended(self) -> None:
        while self._ended:
            remove_tree(self._ended.pop())
