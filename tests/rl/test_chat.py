"""Episodes that are played by the replies of a chat model."""

import asyncio
from pathlib import Path

import pytest

from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import EnvironmentProblem
from gta_bench.metrics.similarity import exact
from gta_bench.rl.chat import OVER, ChatCall, ChatEpisode, ChatTurn
from gta_bench.rl.environment import Environment, replay_tape
from gta_bench.rl.rewards import Moment, Reward, tool_use_rewards
from gta_bench.tape.storage import Tape

RIGHT = ChatCall("Calculator", '{"expression": "2*7"}')


@pytest.fixture
def episode(dataset: AtomicDataset, tape: Tape, tmp_path: Path) -> ChatEpisode:
    return ChatEpisode(
        Environment(
            dataset,
            replay_tape(tape, "atomic"),
            tool_use_rewards(exact),
            folder=tmp_path / "w",
            max_steps=3,
        )
    )


def play(
    episode: ChatEpisode, *replies: tuple[list[ChatCall], str], task: str = "2"
) -> list[ChatTurn]:
    async def run() -> list[ChatTurn]:
        await episode.start(task=task)
        return [await episode.take(calls, text) for calls, text in replies]

    try:
        return asyncio.run(run())
    finally:
        episode.close()


def test_a_call_and_an_answer_earn_everything(episode: ChatEpisode, tmp_path: Path) -> None:
    start = asyncio.run(episode.start(task="2"))
    assert [one.name for one in start.functions] == ["Calculator"]
    assert start.functions[0].parameters["required"] == ["expression"]
    assert "7" in start.prompt and "tools" in start.system and start.info["task"] == "2"
    called, answered = play(episode, ([RIGHT], ""), ([], "<think>2*7</think>It is 14."))
    assert called.results == ("14",) and not called.done
    assert answered.terminated and called.reward + answered.reward == pytest.approx(1)
    assert not any((tmp_path / "w").iterdir()), "a closed episode leaves no files behind"


@pytest.mark.parametrize(
    "arguments",
    [
        '{"expression": ' + "[" * 900 + "]" * 900 + "}",
        '{"expression": ' + "[" * 100_000,
        {"expression": float("nan")},
    ],
)
def test_odd_arguments_use_up_a_turn(episode: ChatEpisode, arguments: object) -> None:
    called, answered = play(episode, ([ChatCall("Calculator", arguments)], ""), ([], "It is 14."))
    assert "Calculator" in called.results[0] and not called.done
    assert answered.terminated and called.reward + answered.reward < 1


def test_a_call_without_a_name_and_a_reply_without_a_text_are_mistakes(
    episode: ChatEpisode,
) -> None:
    nameless = ChatCall(None, "{}")  # type: ignore[arg-type]
    called, answered = play(episode, ([nameless], ""), ([], None))  # type: ignore[arg-type]
    assert called.results[0] and answered.terminated and answered.reward == 0


def test_a_reply_with_several_calls_makes_them_in_order_until_no_turn_is_left(
    episode: ChatEpisode,
) -> None:
    calls = [ChatCall("Nope", "{}"), ChatCall("Calculator", "{bad"), RIGHT, RIGHT]
    (turn,) = play(episode, (calls, "ignored"))
    assert "Unknown tool 'Nope'" in turn.results[0] and "not JSON" in turn.results[1]
    assert turn.results[2:] == ("14", OVER)
    assert turn.truncated and turn.info["steps"] == 3


@pytest.mark.parametrize("arguments", ["[1]", "3", '{"expression": 1, "other": 2}', 7])
def test_wrong_arguments_are_shown_to_the_model(episode: ChatEpisode, arguments: object) -> None:
    (turn,) = play(episode, ([ChatCall("Calculator", arguments)], ""))
    assert turn.results[0].startswith("Calculator")
    assert turn.info["cause"] == "wrong_arguments" and not turn.done


def test_an_episode_without_a_score_is_an_error_and_not_0(
    dataset: AtomicDataset, tape: Tape, tmp_path: Path
) -> None:
    async def lose(moment: Moment) -> Reward:
        return Reward(None, {}, "The check has no reader.")

    environment = Environment(dataset, replay_tape(tape, "atomic"), lose, folder=tmp_path / "w")
    with pytest.raises(EnvironmentProblem, match="has to be dropped: The check has no reader"):
        play(ChatEpisode(environment), ([], "14"))
