import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.agents.contract import DecidedStep
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import UsageError
from gta_bench.metrics.similarity import exact
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, StepError
from gta_bench.rl.environment import Environment, replay_tape, step_rewards
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import Tape
from tests.builders import write_atomic
from tests.rl.policies import episode, gold_policy, silent_policy, value
from tests.tape.builders import Scripted
from tests.tape.datasets import CALCULATOR, multiplication


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> AtomicDataset:
    tasks = {str(number): multiplication(number) for number in range(2, 12)}
    return load_atomic(write_atomic(tmp_path_factory.mktemp("data"), tasks, [CALCULATOR]))


@pytest.fixture(scope="module")
def tape(dataset: AtomicDataset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tape]:
    folder = tmp_path_factory.mktemp("tape")
    write_reference_tape(dataset, folder)
    tape = Tape.open(folder)
    yield tape
    tape.close()


@pytest.fixture
def environment(dataset: AtomicDataset, tape: Tape, tmp_path: Path) -> Environment:
    return Environment(
        dataset, replay_tape(tape, "atomic"), step_rewards(exact), folder=tmp_path / "w"
    )


def test_the_reference_is_worth_one_and_silence_nothing(
    environment: Environment, dataset: AtomicDataset
) -> None:
    best = asyncio.run(episode(environment, gold_policy(dataset.tasks), task="3"))
    worst = asyncio.run(episode(environment, silent_policy(), task="3"))
    assert [value(one) for one in best] == [0.5, 0.5]
    assert (best[-1].terminated, best[-1].truncated) == (True, False)
    assert [value(one) for one in worst] == [0.0] * 10
    assert (worst[-1].terminated, worst[-1].truncated) == (False, True)


def test_the_same_seed_is_the_same_episode_and_another_goes_on(
    environment: Environment, dataset: AtomicDataset
) -> None:
    async def told(seed: int | None) -> list[str]:
        transitions = await episode(environment, gold_policy(dataset.tasks), seed=seed)
        return [str(one) for one in transitions]

    async def all_of_them() -> list[list[str]]:
        return [await told(seed) for seed in (7, None, 7, None)]

    first, second, again, and_on = asyncio.run(all_of_them())
    assert (first, second) == (again, and_on)
    assert first != second


def test_what_is_wrong_is_told_and_costs_the_turn(environment: Environment) -> None:
    async def work() -> tuple[list[float], list[str], str]:
        await environment.reset(task="4")
        actions: list[DecidedStep] = [
            CallStep(name="Calculator", arguments="4*7"),
            MalformedStep(content="hm", reason="no call and no answer"),
            CallStep(name="Calculator", arguments={}, error=StepError(type="A", message="empty")),
            CallStep(name="Calculator", arguments={"expression": "1+1"}),
        ]
        done = [await environment.step(action) for action in actions]
        turns = done[-1].observation.history.turns
        told = [getattr(turn, "feedback", "") for turn in turns]
        return [value(one) for one in done], [text for text in told if text], str(turns[-1])

    values, told, last = asyncio.run(work())
    assert values == [0.0] * 4
    assert told == ["The arguments are not an object.", "no call and no answer", "empty"]
    assert "gave no reply" in last


def test_a_call_that_is_not_on_the_tape_is_worth_what_was_decided(
    environment: Environment,
) -> None:
    """A missing recording is no fault of the policy's; another expression is partly right."""

    async def work() -> float:
        await environment.reset(task="4")
        call = CallStep(name="Calculator", arguments={"expression": "1+1"})
        return value(await environment.step(call))

    assert asyncio.run(work()) == pytest.approx(1 / 3)


def test_a_call_that_the_tool_refuses_is_worth_nothing(
    dataset: AtomicDataset, tmp_path: Path
) -> None:
    from gta_bench.errors import ToolError

    def refuse(*_: object) -> str:
        raise ToolError("No.")

    source = Scripted(refuse)
    environment = Environment(
        dataset, lambda task: source, step_rewards(exact), folder=tmp_path / "w", max_steps=1
    )

    async def work() -> tuple[float, bool, bool]:
        observation = await environment.reset(task="4")
        call = CallStep(name="Calculator", arguments={"expression": "4*7"})
        transition = await environment.step(call)
        return value(transition), transition.truncated, observation.history.last

    assert asyncio.run(work()) == (0.0, True, True)


def test_steps_outside_an_episode_are_refused(environment: Environment, tmp_path: Path) -> None:
    async def after_the_end() -> None:
        await environment.reset(task="4")
        await environment.step(AnswerStep(content="28"))
        await environment.step(AnswerStep(content="28"))

    async def before_any() -> None:
        await environment.close()
        await environment.step(AnswerStep(content="28"))

    with pytest.raises(UsageError, match="reset"):
        asyncio.run(after_the_end())
    with pytest.raises(UsageError, match="reset"):
        asyncio.run(before_any())
    with pytest.raises(UsageError, match="no task 'x'"):
        asyncio.run(environment.reset(task="x"))
    assert not any((tmp_path / "w").iterdir()), "a closed environment leaves no workspace"


def test_every_reference_of_the_released_dataset_is_worth_one(
    atomic_dir: Path, tmp_path: Path
) -> None:
    dataset = load_atomic(atomic_dir)
    write_reference_tape(dataset, tmp_path / "tape")
    tape = Tape.open(tmp_path / "tape")
    environment = Environment(
        dataset, replay_tape(tape, "atomic"), step_rewards(exact), folder=tmp_path / "w"
    )
    policy = gold_policy(dataset.tasks)

    async def returns() -> dict[str, float]:
        found = {}
        for name in dataset.tasks:
            done = await episode(environment, policy, task=name)
            found[name] = sum(map(value, done))
        await environment.close()
        return found

    try:
        found = asyncio.run(returns())
    finally:
        tape.close()
    assert len(found) == 229
    assert found == pytest.approx(dict.fromkeys(found, 1.0))


def test_what_a_killed_episode_left_does_not_block_its_task(
    environment: Environment, dataset: AtomicDataset, tmp_path: Path
) -> None:
    left = tmp_path / "w" / "3" / "inputs"
    left.mkdir(parents=True)
    (left / "image.jpg").write_bytes(b"old")
    best = asyncio.run(episode(environment, gold_policy(dataset.tasks), task="3"))
    assert [value(one) for one in best] == [0.5, 0.5]
