"""A thousand episodes on the reference's tape against a bare loop over the same tools."""

import asyncio
import random
from pathlib import Path
from time import process_time

import pytest

from gta_bench.agents.contract import Decide
from gta_bench.confine.files import remove_tree
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import ToolUnavailable
from gta_bench.metrics.similarity import exact
from gta_bench.rl.environment import Environment, replay_tape
from gta_bench.rl.rewards import step_rewards
from gta_bench.tape.reference import write_reference_tape
from gta_bench.tape.storage import Tape
from tests.rl.policies import episode, gold_policy, silent_policy, value

EPISODES = 1_000
PART = 100


async def bare(dataset: AtomicDataset, tape: Tape, names: list[str], folder: Path) -> None:
    """The reference's calls, each task in a fresh workspace; nothing else."""
    sources = replay_tape(tape, "atomic")
    for name in names:
        task = dataset.tasks[name]
        files = {item.path: dataset.root / item.source for item in task.attachments}
        workspace = Workspace.create(folder / name, files, follow_links=True)
        source = sources(name)
        for turn in task.calls:
            try:
                await source.call(workspace, turn.call.name, turn.call.arguments)
            except ToolUnavailable:
                assert turn is task.steps[-1], "the reference lacks two replies, at its ends"
        remove_tree(workspace.root)


async def played(environment: Environment, policy: Decide, names: list[str]) -> list[float]:
    """The return of an episode on each task."""
    return [sum(map(value, await episode(environment, policy, task=name))) for name in names]


@pytest.mark.measure
def test_episodes_against_a_bare_loop(atomic_dir: Path, tmp_path: Path) -> None:
    dataset = load_atomic(atomic_dir)
    write_reference_tape(dataset, tmp_path / "tape")
    tape = Tape.open(tmp_path / "tape")
    environment = Environment(
        dataset, replay_tape(tape, "atomic"), step_rewards(exact), folder=tmp_path / "w"
    )
    gold, silent = gold_policy(dataset.tasks), silent_policy()
    names = random.Random(1).choices(list(dataset.tasks), k=EPISODES)
    steps = sum(len(dataset.tasks[name].calls) for name in names)
    spent = {"bare": 0.0, "episodes": 0.0}
    returns: list[float] = []
    # In turns, so that a busy moment meets both.
    for start in range(0, EPISODES, PART):
        part = names[start : start + PART]
        begun = process_time()
        asyncio.run(bare(dataset, tape, part, tmp_path / "b"))
        spent["bare"] += process_time() - begun
        begun = process_time()
        returns += asyncio.run(played(environment, gold, part))
        spent["episodes"] += process_time() - begun
    silence = asyncio.run(played(environment, silent, names))
    tape.close()
    rates = {name: steps / seconds for name, seconds in spent.items()}
    print(f"{steps} calls a second: {rates}, ratio {rates['episodes'] / rates['bare']:.2f}")
    assert returns == pytest.approx([1.0] * EPISODES)
    assert set(silence) == {0.0}
    assert rates["episodes"] / rates["bare"] >= 0.5
