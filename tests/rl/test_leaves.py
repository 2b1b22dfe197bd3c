"""The judge's leaves as a reward, outside any evaluation."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import GenerateConfig

from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.rl.environment import Environment, Transition
from gta_bench.rl.leaves import leaf_rewards
from gta_bench.settings import Settings
from tests.chat_server import Reply, chat_server
from tests.judging.builders import model, names, verdict
from tests.tape.builders import Scripted
from tests.tasks.workflow_runs import WORDS, write_dataset


def reads(request: dict[str, Any]) -> str:
    """Gives 8 to a leaf whose word stands in the evidence, else 0."""
    (leaf,) = names(request)
    found = WORDS[leaf.partition("~")[0]] in json.dumps(request["messages"])
    return json.dumps(verdict(leaf, 8 if found else 0))


def broken(request: dict[str, Any]) -> str:
    return "I would say nine."


def play(tmp_path: Path, judge: Reply, *animals: str) -> list[Transition]:
    """Write a note about these animals, then answer."""

    def write(workspace: Workspace, arguments: object) -> str:
        return workspace.write("note.txt", " ".join(animals).encode()).path

    dataset = load_workflow(write_dataset(tmp_path / "data"))
    source = Scripted(write)

    async def work(url: str) -> list[Transition]:
        async with model(url, GenerateConfig(max_retries=0)) as opened:
            rewards = leaf_rewards(opened, Settings(), folder=tmp_path / "kept")
            environment = Environment(
                dataset, lambda task: source, rewards, folder=tmp_path / "w", max_steps=3
            )
            await environment.reset(task="2")
            call = CallStep(name="HtmlFileGenerator", arguments={})
            done = [
                await environment.step(call),
                await environment.step(AnswerStep(content="Here is the note.")),
            ]
            await environment.close()
            return done

    with chat_server(judge) as server:
        return asyncio.run(work(server.url))


@pytest.mark.parametrize(
    ("animals", "root", "leaves"),
    [
        (("quokka", "wombat", "numbat"), 0.8, (0.8, 0.8, 0.8)),
        (("quokka", "numbat"), 0.6, (0.8, 0.0, 0.8)),
        ((), 0.0, (0.0, 0.0, 0.0)),
    ],
)
def test_the_reward_is_the_weighted_tree_of_the_leaves_at_the_end(
    loopback: None, tmp_path: Path, animals: tuple[str, ...], root: float, leaves: tuple[float, ...]
) -> None:
    before, end = play(tmp_path, reads, *animals)
    assert (before.reward, before.info["parts"]) == (0.0, {})
    assert end.reward == pytest.approx(root)
    assert tuple(end.info["parts"][leaf] for leaf in WORDS) == pytest.approx(leaves)


def test_a_judge_that_breaks_its_form_leaves_no_reward_and_not_zero(
    loopback: None, tmp_path: Path
) -> None:
    end = play(tmp_path, broken, "quokka")[-1]
    assert (end.reward, end.info["cause"]) == (None, "unscored")
    assert "leaves have a score" in end.info["message"]
