"""Episodes on forged tasks, with exact rewards and without a judge."""

import asyncio
import pickle
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from gta_bench.checks.delivery import CheckedWork
from gta_bench.confine.workspace import Workspace
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.forge.catalog import ATOMIC_FAMILIES, FAMILIES, find_families
from gta_bench.forge.draft import Work
from gta_bench.forge.writing import Order, make_task
from gta_bench.records.calls import ToolResult
from gta_bench.records.steps import AnswerStep, CallStep
from gta_bench.records.tools import ToolSpec
from gta_bench.records.verdicts import Unscored
from gta_bench.records.workflow import Checkpoint
from gta_bench.rl.environment import Environment, Transition
from gta_bench.rl.forged import ForgedTasks, check_rewards
from gta_bench.settings import Settings
from gta_bench.tools.equipment import use_equipment
from tests.authored import write_task
from tests.forge.test_families import list_leaves

ORDER = Order("train", "7", 1)
FAMILY = FAMILIES["clean"]


class Delivery:
    """A tool that delivers a work."""

    def __init__(self, work: Work, tool: str) -> None:
        self._work = work
        self._tool = tool

    def specs(self) -> Mapping[str, ToolSpec]:
        return {self._tool: ToolSpec(name=self._tool)}

    async def call(
        self, workspace: Workspace, name: str, arguments: Mapping[str, JsonValue]
    ) -> ToolResult:
        for path, data in self._work.files.items():
            workspace.write(path, data)
        return ToolResult(parts=(), tool=name, tool_version="1", backend="test")


async def play(folder: Path, work: Work | None, name: str) -> tuple[Sequence[Transition], str]:
    """An episode in which a work is delivered, or nothing."""
    tool = make_task(FAMILY, ORDER, 1).tools[0]
    async with use_equipment(Settings()) as equipment:
        environment = Environment(
            ForgedTasks([FAMILY], ORDER),
            lambda task: Delivery(work or Work({}), tool),
            check_rewards(equipment),
            folder=folder,
        )
        _, info = await environment.reset(task=name)
        found = []
        if work is not None:
            found.append(await environment.step(CallStep(name=tool, arguments={})))
        answer = AnswerStep(content=work.answer if work is not None else "")
        found.append(await environment.step(answer))
        await environment.close()
    return found, info["task"]


def test_gold_earns_everything_wrong_work_less_and_silence_nothing(tmp_path: Path) -> None:
    name = f"clean-train-7-1-{12:05}"
    draft = make_task(FAMILY, ORDER, 12)
    for work in draft.gold.values():
        found, task = asyncio.run(play(tmp_path, work, name))
        assert task == name
        assert [one.reward for one in found] == [0.0, 1.0] and found[-1].terminated
    for wrong in draft.wrong.values():
        found, _ = asyncio.run(play(tmp_path, wrong.work, name))
        lost = {leaf for leaf, value in found[-1].info["parts"].items() if value < 1}
        # A leaf that needs a broken one cannot hold either.
        needy = {one.id for one in list_leaves(draft) if {*one.needs} & {*wrong.breaks}}
        assert {*wrong.breaks} <= lost <= {*wrong.breaks} | needy
        assert found[-1].reward is not None and found[-1].reward < 1
    found, _ = asyncio.run(play(tmp_path, None, name))
    assert found[-1].reward == 0.0
    assert not any(tmp_path.iterdir()), "an episode leaves no files behind"


def test_tasks_follow_the_seed_and_can_be_named(tmp_path: Path) -> None:
    tasks = ForgedTasks([FAMILY, FAMILIES["sales"]], ORDER)

    async def list_names(tasks: ForgedTasks) -> list[str]:
        async with use_equipment(Settings()) as equipment:
            environment = Environment(
                tasks,
                lambda task: Delivery(Work({}), "ReadCSV"),
                check_rewards(equipment),
                folder=tmp_path,
            )
            first = [(await environment.reset(seed=3)).info["task"]]
            first += [(await environment.reset()).info["task"] for _ in range(7)]
            await environment.close()
            return first

    names = asyncio.run(list_names(tasks))
    assert len({*names}) == 8 and {name.partition("-")[0] for name in names} == {"clean", "sales"}
    assert asyncio.run(list_names(pickle.loads(pickle.dumps(tasks)))) == names
    for name in (
        "clean-train-8-1-00001",
        "clean-public-7-1-00001",
        "clean",
        "deck-train-7-1-00001",
        "clean-train-7-1-00000",
        f"clean-train-7-1-{10**9}",
        "clean-train-7-1-" + "9" * 5000,
    ):
        with pytest.raises(UsageError, match="There is no task"):
            tasks.find(name, tmp_path)


def test_no_family_and_atomic_families_are_refused() -> None:
    with pytest.raises(UsageError, match="Name at least one family"):
        ForgedTasks([], ORDER)
    atomic: Any = [*ATOMIC_FAMILIES.values()]
    with pytest.raises(UsageError, match="bars is not a family of GTA-Workflow"):
        ForgedTasks(atomic, ORDER)
    with pytest.raises(UsageError, match="bars is an atomic family"):
        find_families(["clean", "bars"])


def test_a_private_set_needs_its_key() -> None:
    with pytest.raises(UsageError, match="--key-file"):
        ForgedTasks([FAMILY], Order("private", "7", 1))


async def answer(folder: Path, dataset: WorkflowDataset) -> Transition:
    """An episode with an answer alone."""
    async with use_equipment(Settings()) as equipment:
        environment = Environment(
            dataset, lambda task: Delivery(Work({}), "ReadCSV"), check_rewards(equipment),
            folder=folder,
        )  # fmt: skip
        await environment.reset()
        found = await environment.step(AnswerStep(content="South"))
        await environment.close()
    return found


def test_a_leaf_that_only_a_judge_decides_is_refused(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks")
    with pytest.raises(UsageError, match=r"only a judge can decide .*advice.* use leaf_rewards"):
        asyncio.run(answer(tmp_path / "work", load_workflow(tmp_path / "tasks")))


def test_an_episode_that_a_check_cannot_decide_has_no_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(leaf: Checkpoint, work: CheckedWork) -> Unscored:
        return Unscored(cause="check_failed", detail=f"{leaf.id}: no reader")

    monkeypatch.setattr("gta_bench.rl.forged.decide_leaf", fail)
    tasks = ForgedTasks([FAMILY], ORDER)
    found = asyncio.run(answer(tmp_path / "work", tasks.draw(random.Random(1), tmp_path)))
    assert found.reward is None and found.info["cause"] == "unscored"
    assert "no reader" in found.info["message"]
