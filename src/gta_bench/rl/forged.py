"""Endless training: forged tasks, and a reward that checks decide exactly, without a judge."""

import hashlib
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from gta_bench.checks.decide import decide_leaf
from gta_bench.checks.delivery import CheckedWork
from gta_bench.datasets.folders import load_task, wrap_task
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.errors import UsageError, join_first
from gta_bench.forge.draft import TaskFamily
from gta_bench.forge.writing import (
    Order,
    list_task_files,
    make_task,
    name_task,
    write_files,
)
from gta_bench.metrics.strict.workflow import root_score
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.records.workflow import WorkflowTask
from gta_bench.rl.rewards import Moment, Reward, Rewards
from gta_bench.tools.contract import Equipment
from gta_bench.tools.recognition import make_recognition

MOST: Final = 10.0
# Numbers that an environment draws from; any task can be made again by its name.
NUMBERS: Final = 10**9


class ForgedTasks:
    """An endless dataset of forged tasks: each is made when its episode begins."""

    def __init__(self, families: Sequence[TaskFamily], order: Order) -> None:
        order.check()
        if not families:
            raise UsageError("Name at least one family, such as find_families(['clean']).")
        for one in families:
            if not isinstance(one, TaskFamily):
                raise UsageError(
                    f"{getattr(one, 'name', one)} is not a family of GTA-Workflow: `gta forge "
                    "--list` shows which families can be trained on."
                )
        self._families = {one.name: one for one in families}
        self._order = order

    def draw(self, dice: random.Random, folder: Path) -> WorkflowDataset:
        """Make a random task in a folder, as a dataset of one."""
        family = self._families[dice.choice([*self._families])]
        return self._make(family, dice.randrange(1, NUMBERS), folder)

    def find(self, name: str, folder: Path) -> WorkflowDataset:
        """Make the task with that name in a folder, as a dataset of one."""
        family, number = self._families.get(name.partition("-")[0]), name.rpartition("-")[2]
        wanted = int(number) if number.isdecimal() and len(number) < 10 else 0
        known = family is not None and name_task(family, self._order, wanted) == name
        if family is None or not known or wanted < 1:
            example = name_task(next(iter(self._families.values())), self._order, 1)
            raise UsageError(
                f"There is no task {name[:80]!r}; {example} is one, with any number from 1 to "
                f"{NUMBERS - 1}."
            )
        return self._make(family, wanted, folder)

    def _make(self, family: TaskFamily, number: int, folder: Path) -> WorkflowDataset:
        place = folder / name_task(family, self._order, number)
        draft = make_task(family, self._order, number)
        write_files(place, list_task_files(draft, place.name))
        return wrap_task(place, load_task(place))


def check_rewards(equipment: Equipment) -> Rewards:
    """Return a reward that is 0 until the end, then the root score by the leaves' checks, 0 to 1.

    Every leaf needs checks; use `leaf_rewards` for tasks with leaves that a judge decides. If a
    check cannot decide, the reward of the episode is None, not 0.
    """

    async def reward(moment: Moment) -> Reward:
        assert isinstance(moment.task, WorkflowTask), "GTA-Atomic has no checkpoints"
        require_checks(moment.task)
        if not moment.done:
            return Reward(0.0)
        work = _open_work(moment, equipment)
        verdicts = {leaf.id: await decide_leaf(leaf, work) for leaf in moment.task.leaves()}
        values = {leaf: one.value for leaf, one in verdicts.items() if isinstance(one, Scored)}
        root = root_score(moment.task.checkpoints, values)
        parts = {leaf: value / MOST for leaf, value in values.items()}
        if root is None or len(values) < len(verdicts):
            broken = next(one for one in verdicts.values() if not isinstance(one, Scored))
            return Reward(None, parts, broken.detail)
        return Reward(root / MOST, parts)

    return reward


def require_checks(task: WorkflowTask) -> None:
    """Raise UsageError unless checks decide every leaf of a task."""
    open_leaves = [leaf.id for leaf in task.leaves() if leaf.by != "check"]
    if open_leaves:
        raise UsageError(
            f"Task {task.id}: only a judge can decide {join_first(open_leaves)}. Train on tasks "
            "whose leaves all have checks, or use leaf_rewards."
        )


def _open_work(moment: Moment, equipment: Equipment) -> CheckedWork:
    space = moment.workspace
    read = partial(space.read, most_bytes=space.quota.input_bytes)
    return CheckedWork(
        WorkflowUnit(task=moment.task, trace=moment.work.trace).answer,
        {file.path: partial(read, file.path) for file in space.outputs().files},
        equipment.need_jail(),
        inputs=[hashlib.sha256(read(item.path)).hexdigest() for item in moment.task.attachments],
        recognition=make_recognition(equipment),
    )
