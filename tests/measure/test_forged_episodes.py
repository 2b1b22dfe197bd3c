"""Ten thousand episodes on forged tasks: gold earns 1, an empty delivery 0, and how fast it goes.

They are on families whose checks need no parser in the jail, so that the environment is measured.
A few episodes on the other families that need neither LibreOffice nor Chromium show what the jail
adds. The figures go to docs/measurements.md.
"""

import asyncio
import os
import time
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import pytest

from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import TaskDraft
from gta_bench.forge.writing import Order, make_task
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.rl import forged
from gta_bench.rl.environment import Environment
from gta_bench.rl.forged import ForgedTasks, check_rewards
from gta_bench.settings import Settings
from gta_bench.tools.equipment import use_equipment
from tests.rl.test_forged import Delivery

pytestmark = pytest.mark.measure
PLAIN = ("chart", "invoices")
PARSED = ("annotate", "bundle", "clean", "deck", "report", "schedule", "terms")
PARTS, EPISODES, FEW = 10, 1000, 42
ANY = "Calculator"  # offered by families that offer all tools
ORDER = Order("train", "endless", 1)
# A task is made for its first episode, and known in its second one and to the policy.
make_once = lru_cache(maxsize=1)(make_task)


def find_draft(name: str) -> TaskDraft:
    """The draft of a task by its name."""
    return make_once(FAMILIES[name.partition("-")[0]], ORDER, int(name.rpartition("-")[2]))


def deliver_gold(name: str) -> Delivery:
    """A tool that delivers the gold of a task: either one, by its number."""
    draft = find_draft(name)
    return Delivery([*draft.gold.values()][int(name[-1]) % 2], next(iter(draft.tools), ANY))


async def end(environment: Environment, name: str, *, gold: bool) -> float | None:
    """Deliver a gold work and its answer, or nothing; return the reward."""
    draft = find_draft(name)
    answer = ""
    if gold:
        await environment.step(CallStep(name=next(iter(draft.tools), ANY), arguments={}))
        answer = [*draft.gold.values()][int(name[-1]) % 2].answer
    return (await environment.step(AnswerStep(content=answer))).reward


async def play(names: tuple[str, ...], seed: int, episodes: int, folder: Path) -> None:
    """Play episodes, half of them with gold, and print how fast that was."""
    rewards: dict[bool, list[float | None]] = {True: [], False: []}
    tasks = ForgedTasks([FAMILIES[name] for name in names], ORDER)
    async with use_equipment(Settings()) as equipment:
        environment = Environment(tasks, deliver_gold, check_rewards(equipment), folder=folder)
        await environment.reset(seed=seed)
        spent, start = sum(os.times()[:4]), time.monotonic()
        for _ in range(episodes // 2):
            name = (await environment.reset()).info["task"]
            rewards[True].append(await end(environment, name, gold=True))
            await environment.reset(task=name)
            rewards[False].append(await end(environment, name, gold=False))
        await environment.close()
    seconds, wall = sum(os.times()[:4]) - spent, time.monotonic() - start
    steps = episodes // 2 * 3
    print(
        f"{', '.join(names)}: {episodes} episodes, {steps} steps, {steps / seconds:.1f} steps a "
        f"second of CPU time, {steps / wall:.1f} a second at a load of {os.getloadavg()[0]:.0f}"
    )
    assert rewards == {True: [1.0] * (episodes // 2), False: [0.0] * (episodes // 2)}
    assert not any(folder.iterdir()), "an episode leaves no files behind"


@pytest.mark.parametrize("part", range(PARTS))
def test_gold_earns_one_and_nothing_zero(part: int, tmp_path: Path) -> None:
    with patch.object(forged, "make_task", make_once):
        asyncio.run(play(PLAIN, part, EPISODES, tmp_path))


def test_gold_earns_one_and_nothing_zero_where_files_are_parsed_in_the_jail(tmp_path: Path) -> None:
    with patch.object(forged, "make_task", make_once):
        asyncio.run(play(PARSED, PARTS, FEW, tmp_path))
