"""Policies that are scripted, and episodes with them."""

from collections.abc import Mapping

from gta_bench.agents.catalog import load_agent
from gta_bench.agents.contract import Decide, Setup
from gta_bench.records.atomic import AtomicTask
from gta_bench.rl.environment import Environment, Transition


def gold_policy(tasks: Mapping[str, AtomicTask]) -> Decide:
    return load_agent("gold")(Setup(references={name: task.steps for name, task in tasks.items()}))


def silent_policy() -> Decide:
    return load_agent("silent")(Setup())


async def episode(
    environment: Environment, policy: Decide, *, seed: int | None = None, task: str | None = None
) -> list[Transition]:
    """A whole episode."""
    observation, _ = await environment.reset(seed=seed, task=task)
    transitions: list[Transition] = []
    while not transitions or not (transitions[-1].terminated or transitions[-1].truncated):
        decision = await policy(*observation)
        transitions.append(await environment.step(decision.step))
        observation = transitions[-1].observation
    return transitions


def value(transition: Transition) -> float:
    assert transition.reward is not None
    return transition.reward
