"""What a changed dataset means for tasks and runs: reused, rescored, judged or run again."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from gta_bench.records.atomic import AtomicTask
from gta_bench.records.attempts import UnitKey
from gta_bench.records.digests import TaskDigests
from gta_bench.records.versions import Action, RunNeeds, TaskPlan
from gta_bench.records.workflow import WorkflowTask


class TaskVersion(NamedTuple):
    """A task of the new version of a dataset, and its digests."""

    task: AtomicTask | WorkflowTask
    digests: TaskDigests


class DoneUnit(NamedTuple):
    """A finished unit: the digests of what it was asked, and how many model calls it made."""

    key: UnitKey
    digests: TaskDigests
    model_calls: int | None


class JudgeLoad(NamedTuple):
    """How many calls a judge makes: leaves in one call, repeats, and whether it has a control."""

    leaves_per_call: int = 1
    repeats: int = 1
    control: bool = False

    def calls(self, leaves: int) -> int:
        """Return the number of calls for so many leaves of one unit."""
        if not leaves:
            return 0
        return self.control + self.repeats * ceil(leaves / self.leaves_per_call)


def plan_task(name: str, before: TaskDigests | None, after: TaskVersion | None) -> TaskPlan:
    """Return what a task needs; `before` is None if it is new, `after` if it no longer exists."""
    if before is None or after is None:
        return TaskPlan(task=name, action="removed" if after is None else "added")
    found = after.digests.changes(before)
    leaves = [f"leaf {leaf}" for leaf in (*found.leaves, *found.gone)]
    parts = [("weights", found.weighs), ("proofs", found.proofs)]
    changed = (*found.asks, *leaves, *(part for part, is_changed in parts if is_changed))
    # Verdicts belong to what a leaf says: a leaf that only has another id keeps its own.
    known = {*before.leaf.values()}
    new = {leaf for leaf in found.leaves if after.digests.leaf[leaf] not in known}
    recheck, judge = _who_decides(after.task, new)
    action: Action = "reuse"
    if found.asks or (isinstance(after.task, AtomicTask) and leaves):
        action, recheck, judge = "run", (), ()
    elif judge:
        action = "judge"
    elif recheck:
        action = "recheck"
    elif leaves or found.weighs:
        action = "rescore"
    return TaskPlan(task=name, action=action, changed=changed, recheck=recheck, judge=judge)


def _who_decides(
    task: AtomicTask | WorkflowTask, names: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those of the leaves that have checks, and those that a judge may decide."""
    if isinstance(task, AtomicTask):
        return (), ()
    chosen = [leaf for leaf in task.leaves() if leaf.id in {*names}]
    return (
        tuple(leaf.id for leaf in chosen if leaf.checks),
        tuple(leaf.id for leaf in chosen if leaf.by != "check"),
    )


def plan_run(
    run: str,
    wanted: Sequence[UnitKey],
    done: Iterable[DoneUnit],
    after: Mapping[str, TaskVersion],
    judges: Sequence[JudgeLoad],
    *,
    added: Sequence[UnitKey] = (),
) -> RunNeeds:
    """Return what a run of the units `wanted` needs for the new version.

    `added` are the units of tasks that only the new version has.
    """
    finished = {unit.key: unit for unit in done}
    calls = [unit.model_calls for unit in finished.values()]
    known = [one for one in calls if one is not None]
    usual = ceil(sum(known) / len(known)) if known and len(known) == len(calls) else None
    units: Counter[Action] = Counter({"added": len(added)} if added else {})
    system = [usual] * len(added)
    recheck = judge = judge_calls = 0
    to_judge = [task for task, _ in added]
    for key in wanted:
        unit = finished.get(key)
        version = after.get(key[0])
        plan = plan_task(key[0], None if unit is None else unit.digests, version)
        action: Action = "run" if plan.action == "added" else plan.action
        units[action] += 1
        if action == "run":
            to_judge.append(key[0])
            system.append(usual if unit is None else unit.model_calls)
        recheck += len(plan.recheck)
        judge += len(plan.judge)
        judge_calls += sum(one.calls(len(plan.judge)) for one in judges)
    return RunNeeds(
        run=run,
        units=dict(sorted(units.items())),
        recheck=recheck,
        judge=judge,
        judge_calls=judge_calls,
        system_calls=None if None in system else sum(one or 0 for one in system),
        new_judge_calls=sum(
            one.calls(_count_judged(after[task].task)) for task in to_judge for one in judges
        ),
    )


def _count_judged(task: AtomicTask | WorkflowTask) -> int:
    if isinstance(task, AtomicTask):
        return 0
    return sum(leaf.by != "check" for leaf in task.leaves())
