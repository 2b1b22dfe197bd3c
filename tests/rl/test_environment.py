import asyncio
import gc
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from gta_bench.agents.contract import DecidedStep
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import exact
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.dialogue import AnswerTurn
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, StepError
from gta_bench.rl.environment import Environment, Transition, replay_tape
from gta_bench.rl.rewards import step_rewards
from gta_bench.rl.vector import VectorEnvironment
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import Tape
from tests.rl.policies import episode, gold_policy, silent_policy, value
from tests.tape.builders import Scripted
from tests.tasks.workflow_runs import write_dataset


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
        return [str(one[:4]) for one in transitions]

    async def all_of_them() -> list[list[str]]:
        return [await told(seed) for seed in (7, None, 7, None)]

    first, second, again, and_on = asyncio.run(all_of_them())
    assert (first, second) == (again, and_on)
    assert first != second


@pytest.mark.parametrize(
    ("action", "cause"),
    [
        (CallStep(name="Calculator", arguments="4*7"), "wrong_arguments"),
        (CallStep(name="Calculator", arguments={}), "wrong_arguments"),
        (CallStep(name="Calculator", arguments={"expression": "4*7", "x": 1}), "wrong_arguments"),
        (CallStep(name="OCR", arguments={"image": "inputs/a.jpg"}), "not_offered"),
        (CallStep(name="nope", arguments={}), "not_offered"),
        (CallStep(name="Calculator", arguments={"expression": "1+1"}), "not_on_tape"),
        (CallStep(name="Calculator", error=StepError(type="A", message="no")), "tool_failed"),
        (MalformedStep(content="hm", reason="no call and no answer"), "malformed"),
    ],
)
def test_a_call_without_a_reply_is_worth_nothing_and_the_cause_is_told(
    environment: Environment, action: DecidedStep, cause: str
) -> None:
    """Calls that missed the tape were once rewarded, and a policy learned to make them."""

    async def work() -> Transition:
        await environment.reset(task="4")
        return await environment.step(action)

    transition = asyncio.run(work())
    assert (value(transition), transition.info["cause"]) == (0.0, cause)
    assert transition.info["message"]
    told = transition.observation.history.turns[-1]
    assert transition.info["message"] in str(
        getattr(told, "feedback", getattr(told, "content", ""))
    )


@pytest.mark.parametrize("action", ["hello", None, {"name": "Calculator"}, ("Calculator", {})])
def test_what_is_no_action_is_refused_with_a_typed_error(
    environment: Environment, action: Any
) -> None:
    async def work() -> None:
        await environment.reset(task="4")
        await environment.step(action)

    with pytest.raises(UsageError, match="An action is a CallStep"):
        asyncio.run(work())


def test_files_of_a_task_are_in_the_folder_of_the_info(atomic_dir: Path, tmp_path: Path) -> None:
    dataset = load_atomic(atomic_dir)
    source = Scripted(lambda *_: "")
    environment = Environment(
        dataset, lambda task: source, step_rewards(exact), folder=tmp_path / "w"
    )

    async def work() -> None:
        observation, info = await environment.reset(task="0")
        for item in observation.history.attachments:
            there, here = info["folder"] / item.path, dataset.root / item.source
            assert there.read_bytes() == here.read_bytes()
        assert observation.history.attachments
        await environment.close()
        assert not info["folder"].exists()

    asyncio.run(work())


def test_no_reference_is_reachable_from_what_a_policy_gets(
    environment: Environment, dataset: AtomicDataset
) -> None:
    async def work() -> list[object]:
        observation, _ = await environment.reset(task="4")
        wrong = CallStep(name="Calculator", arguments={"expression": "1+1"})
        return [observation, (await environment.step(wrong)).observation]

    seen: dict[int, object] = {}
    waiting = asyncio.run(work())
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, type | ModuleType | FunctionType):
            seen[id(one)] = one
            waiting += gc.get_referents(one)
    found = list(seen.values())
    assert not [one for one in found if isinstance(one, AtomicTask | AtomicDataset | Tape)]
    assert not [one for one in found if isinstance(one, AnswerTurn | WhitelistAnswer | Environment)]
    texts = [one for one in found if isinstance(one, str)]
    assert "What is 4*7?" in texts, "the walk sees what the policy sees"
    assert not [one for one in texts if "28" in one or one == "4*7"]


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
        observation, _ = await environment.reset(task="4")
        call = CallStep(name="Calculator", arguments={"expression": "4*7"})
        transition = await environment.step(call)
        assert transition.info["cause"] == "tool_failed"
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


def play_far_away(environment: Environment, actions: list[DecidedStep]) -> list[Transition]:
    """An episode in another process."""

    async def work() -> list[Transition]:
        await environment.reset(task="4")
        done = [await environment.step(action) for action in actions]
        await environment.close()
        return done

    return asyncio.run(work())


def test_an_environment_between_episodes_can_be_sent_to_another_process(
    environment: Environment, dataset: AtomicDataset
) -> None:
    actions: list[DecidedStep] = [*reference_steps(dataset.tasks["4"])]
    here = play_far_away(environment, actions)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = pool.submit(play_far_away, environment, actions).result()
    assert [one[:4] for one in there] == [one[:4] for one in here]
    assert [one.info["cause"] for one in there] == [None, None]

    asyncio.run(environment.reset(task="4"))
    with pytest.raises(UsageError, match="close"):
        pickle.dumps(environment)


def test_environments_of_one_folder_do_not_meet(environment: Environment, tmp_path: Path) -> None:
    twin = pickle.loads(pickle.dumps(environment))

    async def work() -> None:
        _, one = await environment.reset(task="4")
        _, other = await twin.reset(task="4")
        await twin.close()
        assert one["folder"].is_dir() and not other["folder"].exists()
        await environment.close()

    asyncio.run(work())


def test_a_vector_steps_all_and_starts_the_next_episode_of_those_that_end(
    environment: Environment,
) -> None:
    async def work() -> None:
        vector = VectorEnvironment([environment, pickle.loads(pickle.dumps(environment))])
        observations, _ = await vector.reset(seed=3)
        again, _ = await vector.reset(seed=3)
        assert [one.history.task for one in again] == [one.history.task for one in observations]
        left = int(observations[0].history.task)
        with pytest.raises(UsageError, match="2 actions"):
            await vector.step([AnswerStep(content="1")])
        bad: Any = "hello"
        with pytest.raises(UsageError, match="An action is"):
            await vector.step([AnswerStep(content="1"), bad])
        call = CallStep(name="Calculator", arguments={"expression": f"{left}*7"})
        stepped = await vector.step([call, AnswerStep(content="I do not know.")])
        assert stepped.rewards == [0.5, 0.0]
        assert (stepped.terminated, stepped.truncated) == ([False, True], [False, False])
        assert stepped.ended[0] is None and stepped.ended[1] is not None
        assert len(stepped.ended[1].history.turns) == 2
        assert len(stepped.observations[1].history.turns) == 1
        assert stepped.infos[1]["steps"] == 1
        await vector.close()

    asyncio.run(work())


def test_workflow_has_no_reference_steps(tmp_path: Path) -> None:
    dataset = load_workflow(write_dataset(tmp_path / "data"))
    source = Scripted(lambda *_: "")
    environment = Environment(dataset, lambda task: source, step_rewards(exact), folder=tmp_path)

    async def work() -> None:
        await environment.reset(task="2")
        await environment.step(AnswerStep(content="x"))

    with pytest.raises(UsageError, match="leaf_rewards"):
        asyncio.run(work())
