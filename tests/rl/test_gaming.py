"""Policies that do not solve tasks, over all tasks of the released dataset and all rewards."""

import asyncio
import math
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from gta_bench.agents.calling import deduplicate_tools
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.metrics.categories import IMAGE_TOOLS
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from gta_bench.rl.environment import Environment, Observation, replay_tape
from gta_bench.rl.rewards import (
    Moment,
    Reward,
    outcome_rewards,
    score_actions,
    step_rewards,
    tool_use_rewards,
)
from gta_bench.similarity.catalog import load_similarity
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import Tape
from tests.rl.gaming import GAMING, GUESS, PARTIAL, Policy, fill, silence

KINDS = {"step": step_rewards(), "outcome": outcome_rewards(), "tool-use": tool_use_rewards()}
# The returns of a policy: by kind of reward, one for each task.
Returns = Mapping[str, list[float]]


async def all_kinds(moment: Moment) -> Reward:
    rewards = {kind: (await compute(moment)).value or 0.0 for kind, compute in KINDS.items()}
    return Reward(0.0, rewards)


async def play(environment: Environment, dataset: AtomicDataset, policy: Policy) -> Returns:
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for name, task in dataset.tasks.items():
        seen: list[Observation] = [(await environment.reset(task=name)).observation]
        actions, summed = policy(task, lambda seen=seen: seen[-1]), Counter[str]()  # type: ignore[misc]
        while True:
            action = next(actions, None) or MalformedStep(content="", reason="the reply is empty")
            transition = await environment.step(action)
            seen.append(transition.observation)
            summed.update(transition.info["parts"])
            if transition.terminated or transition.truncated:
                break
        for kind, returns in found.items():
            returns.append(summed[kind])
    await environment.close()
    return found


@pytest.fixture(scope="module")
def returns(atomic_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Returns]:
    dataset, folder = load_atomic(atomic_dir), tmp_path_factory.mktemp("gaming")
    write_reference_tape(dataset, folder / "tape")
    tape = Tape.open(folder / "tape")
    environment = Environment(dataset, replay_tape(tape, "atomic"), all_kinds, folder=folder / "w")
    policies = {**PARTIAL, "silence": silence, **GAMING, **GUESS}
    found = {
        name: asyncio.run(play(environment, dataset, policy)) for name, policy in policies.items()
    }
    tape.close()
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.slow
def test_image_calls_by_type_earn_a_part_if_they_are_made(atomic_dir: Path) -> None:
    similar, found = load_similarity("wordllama").measure, []
    for task in load_atomic(atomic_dir).tasks.values():
        tools = [one for one in deduplicate_tools(task.tools) if one.name in IMAGE_TOOLS]
        calls = [CallStep(name=one.name, arguments=fill(one, task)) for one in tools]
        found.append(score_actions("outcome", task, [*calls, AnswerStep(content="x")], similar))
    assert mean(found) == pytest.approx(0.0846, abs=0.0001)


@pytest.mark.slow
def test_gaming_earns_no_outcome_and_the_reference_earns_all(
    returns: Mapping[str, Returns],
) -> None:
    for name, found in returns.items():
        print(f"| {name} | " + " | ".join(f"{mean(found[kind]):.4f}" for kind in KINDS) + " |")
    for kind in KINDS:
        assert returns["reference"][kind] == pytest.approx([1.0] * 229)
        assert returns["silence"][kind] == [0.0] * 229
    assert len(GAMING) >= 12
    for name in GAMING:
        assert mean(returns[name]["outcome"]) <= 0.02, name
    assert returns["answer 2"]["outcome"].count(1.0) == 6
    assert mean(returns["reference after a useless call"]["tool-use"]) == pytest.approx(0.98)
    assert mean(returns["reference, first two calls swapped"]["tool-use"]) == pytest.approx(1.0)


def learn(returns: Mapping[str, Returns], kind: str, names: list[str]) -> tuple[float, str]:
    """REINFORCE over policies; the mean reward of the last 1,000 episodes, and the favorite."""
    chance, logits, baseline = random.Random(1), [0.0] * len(names), 0.0
    earned: list[float] = []
    for _ in range(20_000):
        weights = [math.exp(one) for one in logits]
        chosen = chance.choices(range(len(names)), weights)[0]
        task = chance.randrange(229)
        reward = returns[names[chosen]][kind][task]
        baseline += 0.01 * (reward - baseline)
        for index in range(len(names)):
            share = weights[index] / sum(weights)
            logits[index] += 0.1 * (reward - baseline) * ((index == chosen) - share)
        earned.append(reward)
    favorite = names[max(range(len(names)), key=logits.__getitem__)]
    return mean(earned[-1000:]), favorite


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["outcome", "tool-use"])
def test_a_policy_that_learns_ends_above_half_only_by_solving_tasks(
    returns: Mapping[str, Returns], kind: str
) -> None:
    idle = ["silence", *GAMING, *GUESS]
    gamed, solved = learn(returns, kind, idle), learn(returns, kind, [*idle, "reference"])
    print(kind, gamed, solved)
    assert gamed[0] < 0.5
    assert solved[0] > 0.5 and solved[1] == "reference"
