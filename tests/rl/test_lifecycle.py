"""What an environment accepts, when an episode is over, and what belongs to whom."""

import asyncio
import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gta_bench.agents.contract import DecidedStep, History
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import UsageError
from gta_bench.metrics.similarity import exact, exact_or_half
from gta_bench.records.dialogue import CallTurn
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec
from gta_bench.rl.environment import Environment, Transition, replay_tape
from gta_bench.rl.rewards import (
    Moment,
    Reward,
    Rewards,
    outcome_rewards,
    step_rewards,
    tool_use_rewards,
)
from gta_bench.rl.vector import VectorEnvironment
from gta_bench.settings import Settings
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import Tape
from gta_bench.tools.contract import Equipment
from gta_bench.tools.toolbox import Toolbox
from tests.rl.policies import episode, gold_policy, value
from tests.tape.builders import Scripted

X = AnswerStep(content="x")


def multiply(left: str) -> CallStep:
    return CallStep(name="Calculator", arguments={"expression": f"{left}*7"})


def call_of(history: History) -> dict[str, Any]:
    """The arguments of the only call, which Python lets a policy change."""
    (arguments,) = (turn.call.arguments for turn in history.turns if isinstance(turn, CallTurn))
    assert isinstance(arguments, dict)
    return arguments


@pytest.mark.parametrize("kind", [step_rewards, outcome_rewards, tool_use_rewards])
def test_an_image_tool_that_is_missing_here_draws_and_earns_nothing(
    kind: Callable[..., Rewards], atomic_dir: Path, tmp_path: Path
) -> None:
    """One TextToImage with the request once earned 0.034 of the outcome on a bare machine."""
    dataset = load_atomic(atomic_dir)
    box = Toolbox(Equipment(Settings(), key=lambda name: None, weights=tmp_path / "none"))
    environment = Environment(dataset, lambda task: box, kind(exact_or_half), folder=tmp_path / "w")
    offering = [one for one in dataset.tasks.values() if "TextToImage" in one.offered]

    async def work() -> list[Transition]:
        done = []
        for task in offering:
            await environment.reset(task=task.id)
            call = CallStep(name="TextToImage", arguments={"keywords": task.request})
            done.append(await environment.step(call))
            if kind is not step_rewards:  # which pays for answering at the right position
                done.append(await environment.step(X))
        await environment.close()
        return done

    done = asyncio.run(work())
    assert len(offering) > 10
    assert {one.info["cause"] for one in done if not one.terminated} == {"unavailable"}
    assert {value(one) for one in done} == {0.0}


def test_a_call_that_the_reference_has_no_reply_to_counts_on_its_tape(
    atomic_dir: Path, tmp_path: Path
) -> None:
    dataset = load_atomic(atomic_dir)
    write_reference_tape(dataset, tmp_path / "tape")
    tape = Tape.open(tmp_path / "tape")
    ends = [name for name, task in dataset.tasks.items() if task.dialogue[-1] in task.calls]
    environment = Environment(
        dataset, replay_tape(tape, "atomic"), outcome_rewards(exact), folder=tmp_path / "w"
    )

    async def work(name: str) -> Transition:
        observation, _ = await environment.reset(task=name)
        policy, transition = gold_policy(dataset.tasks), None
        for _ in dataset.tasks[name].steps:
            transition = await environment.step((await policy(*observation)).step)
            observation = transition.observation
        assert transition is not None
        await environment.close()
        return transition

    last = [asyncio.run(work(name)) for name in ends]
    tape.close()
    assert len(last) == 2
    assert {one.info["cause"] for one in last} == {"no_reply"}


@pytest.mark.parametrize("bad", [0, -1, 2.5, None, "3", True])
def test_max_steps_is_a_whole_number_from_one_on(
    bad: Any, dataset: AtomicDataset, tape: Tape, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="max_steps must be a whole number from 1 on"):
        Environment(
            dataset,
            replay_tape(tape, "atomic"),
            step_rewards(exact),
            folder=tmp_path,
            max_steps=bad,
        )


@pytest.mark.parametrize("bad", [-1, "7", 1.0, [1], False])
def test_a_seed_is_a_whole_number_from_zero_on(bad: Any, environment: Environment) -> None:
    async def work() -> None:
        _, info = await environment.reset(task="4")
        with pytest.raises(UsageError, match="A seed is a whole number from 0 on or None"):
            await environment.reset(seed=bad)
        assert info["folder"].is_dir(), "a refused reset ends no episode"
        await environment.close()
        with pytest.raises(UsageError, match="A seed is"):
            await VectorEnvironment([environment]).reset(seed=bad)

    asyncio.run(work())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_environment_is_copied_between_episodes_only(
    duplicate: Callable[[Environment], Environment], environment: Environment
) -> None:
    async def work() -> None:
        _, info = await environment.reset(task="4")
        with pytest.raises(UsageError, match="cannot be pickled or copied during an episode"):
            duplicate(environment)
        await environment.step(X)
        twin = duplicate(environment)
        await twin.close()
        assert info["folder"].is_dir(), "the copy does not own the folder of the ended episode"
        with pytest.raises(UsageError, match="reset"):
            await twin.step(X)
        await twin.reset(task="4")
        assert value(await twin.step(multiply("4"))) == 0.5
        await twin.close()
        await environment.close()

    asyncio.run(work())


def test_a_policy_cannot_change_the_history_of_the_environment(environment: Environment) -> None:
    async def work() -> None:
        await environment.reset(task="4")
        first = (await environment.step(multiply("4"))).observation
        call_of(first.history)["expression"] = "zz"
        second = (await environment.step(X)).observation
        assert call_of(second.history) == {"expression": "4*7"}
        assert first.history.turns[0] is second.history.turns[0], "what is frozen is not copied"
        await environment.close()

    asyncio.run(work())


def test_a_policy_cannot_change_an_action_after_it_was_taken(
    dataset: AtomicDataset, tmp_path: Path
) -> None:
    seen: list[DecidedStep] = []

    async def watch(moment: Moment) -> Reward:
        seen[:] = moment.actions
        return Reward(0.0)

    # The task's tool has another definition here, so that the source decides on the arguments.
    source = Loose(lambda *_: "28")
    environment = Environment(dataset, lambda task: source, watch, folder=tmp_path / "w")

    async def work() -> None:
        await environment.reset(task="4")
        for arguments in ({"expression": "4*7"}, {"wrong": "4*7"}):
            action = CallStep(name="Calculator", arguments=dict(arguments))
            await environment.step(action)
            assert isinstance(action.arguments, dict)
            action.arguments.clear()
        await environment.step(X)
        await environment.close()

    asyncio.run(work())
    calls = [one for one in seen if isinstance(one, CallStep)]
    assert [one.arguments for one in calls] == [{"expression": "4*7"}, {"wrong": "4*7"}]


class Loose(Scripted):
    """A calculator that takes anything."""

    def specs(self) -> dict[str, ToolSpec]:
        return {"Calculator": ToolSpec(name="Calculator")}


def broken(*_: object) -> str:
    raise ValueError("a bug of the tool")


def test_an_episode_is_over_after_a_bug(dataset: AtomicDataset, tmp_path: Path) -> None:
    """The next answer was once rewarded as if the call had not happened."""
    source = Loose(broken)
    environment = Environment(
        dataset, lambda task: source, outcome_rewards(exact), folder=tmp_path / "w"
    )

    async def work() -> None:
        await environment.reset(task="4")
        with pytest.raises(ValueError, match="a bug of the tool"):
            await environment.step(multiply("4"))
        with pytest.raises(UsageError, match=r"call reset\(\)"):
            await environment.step(AnswerStep(content="28"))
        await environment.reset(task="4")
        assert value(await environment.step(AnswerStep(content="28"))) == 1.0
        await environment.close()

    asyncio.run(work())
    assert not any((tmp_path / "w").iterdir())


def test_an_episode_is_over_after_a_reward_that_raises(
    dataset: AtomicDataset, tape: Tape, tmp_path: Path
) -> None:
    async def fail(moment: Moment) -> Reward:
        raise ValueError("a bug of the reward")

    environment = Environment(dataset, replay_tape(tape, "atomic"), fail, folder=tmp_path / "w")

    async def work() -> None:
        await environment.reset(task="4")
        with pytest.raises(ValueError, match="a bug of the reward"):
            await environment.step(multiply("4"))
        with pytest.raises(UsageError, match="reset"):
            await environment.step(X)
        await environment.close()

    asyncio.run(work())


def test_a_vector_keeps_the_folder_of_an_ended_episode_until_the_next_step(
    environment: Environment, tmp_path: Path
) -> None:
    async def work() -> None:
        vector = VectorEnvironment([environment, pickle.loads(pickle.dumps(environment))])
        observations, _ = await vector.reset(seed=3)
        call = multiply(observations[0].history.task)
        stepped = await vector.step([call, X])
        folders = [one["folder"] for one in stepped.infos]
        assert all(one.is_dir() for one in folders)
        with pytest.raises(UsageError, match="2 actions"):
            await vector.step([])
        assert all(one.is_dir() for one in folders), "a refused step removes nothing"
        again = await vector.step([X, X])
        assert [one.exists() for one in folders] == [True, False]
        assert all(one["folder"].is_dir() for one in again.infos)
        _, infos = await vector.reset(seed=3)
        assert sorted((tmp_path / "w").iterdir()) == sorted(one["folder"] for one in infos)
        await vector.step([X, X])
        await vector.close()
        assert not any((tmp_path / "w").iterdir())

    asyncio.run(work())


def test_a_vector_refuses_one_environment_twice(environment: Environment) -> None:
    with pytest.raises(UsageError, match="listed twice"):
        VectorEnvironment([environment, environment])


def test_a_bug_in_one_environment_ends_the_episodes_of_a_vector(
    environment: Environment, dataset: AtomicDataset, tmp_path: Path
) -> None:
    source = Loose(broken)
    other = Environment(dataset, lambda task: source, outcome_rewards(exact), folder=tmp_path / "w")

    async def work() -> None:
        vector = VectorEnvironment([environment, other])
        await vector.reset(seed=1)
        with pytest.raises(ValueError, match="a bug of the tool"):
            await vector.step([X, multiply("4")])
        assert not any((tmp_path / "w").iterdir())
        with pytest.raises(UsageError, match=r"call reset\(\)"):
            await vector.step([X, X])
        await vector.reset(seed=1)
        assert (await vector.step([X, X])).terminated == [True, True]
        await vector.close()

    asyncio.run(work())


def test_the_smallest_seed_is_zero(environment: Environment, dataset: AtomicDataset) -> None:
    assert len(asyncio.run(episode(environment, gold_policy(dataset.tasks), seed=0))) == 2
