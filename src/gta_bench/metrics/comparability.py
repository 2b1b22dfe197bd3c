"""Whether two runs can be compared, what a reader must know, and what a control changes."""

from collections.abc import Iterator, Mapping
from typing import Final

from gta_bench.metrics.counts import add_counts
from gta_bench.metrics.table import ANS_ACC_I
from gta_bench.records.comparison import ComparedRun, SharedTasks
from gta_bench.records.digests import TaskDigests
from gta_bench.records.run import RunManifest, RunSpec, System, compare_specs, show_setting
from gta_bench.records.scores import (
    ControlEffect,
    Disturbance,
    RunScores,
    StrictEndToEndCounts,
    TaskEffect,
    UnitScore,
)
from gta_bench.records.workflow_scores import WorkflowScores

# Options that identify the system or forbid a comparison. A difference in any other option may be
# an advantage for one system, so readers are warned about it.
_NO_CAUTION: Final = frozenset(
    {
        *("dataset", "mode", "tasks", "similarity", "judges"),
        *(name for name in System.model_fields if name != "images"),
    }
)


def find_refusals(first: ComparedRun, second: ComparedRun, *, paired: bool = True) -> list[str]:
    """Return the reasons why two runs cannot be compared; empty if they can.

    Runs that are not `paired` need no common tasks.
    """
    # A copy that was judged again has other scores and may be compared.
    if first.model_copy(update={"name": second.name}) == second:
        return ["they are the same run, or copies of it; name two runs"]
    return list(_refusals(first, second, paired=paired))


def find_cautions(first: ComparedRun, second: ComparedRun) -> list[str]:
    """Return the differences between two runs other than the system."""
    found = []
    one, two = first.manifest, second.manifest
    if one.dataset_digest != two.dataset_digest:
        found.append(f"dataset digests: {one.dataset_digest[:12]} and {two.dataset_digest[:12]}")
        both = _both_digests(first, second).values()
        unknown = sum(one.agrees(two) and None in (one.asks, two.asks) for one, two in both)
        if unknown:
            found.append(f"inputs or tools of {unknown} of the tasks: not recorded in both runs")
    found += find_setting_cautions(one.spec, two.spec)
    found += find_prompt_cautions(one.prompts, two.prompts)
    return found


def find_prompt_cautions(one: Mapping[str, str], two: Mapping[str, str]) -> Iterator[str]:
    """Yield the prompts that two runs do not share; those of both are left out."""
    if one != two:
        left, right = (
            dict(mine.items() - other.items()) for mine, other in ((one, two), (two, one))
        )
        yield f"prompts: {show_setting(left)} and {show_setting(right)}"


def find_setting_cautions(one: RunSpec, two: RunSpec) -> Iterator[str]:
    """Yield the settings in which two runs differ, other than the system."""
    for name, left, right in compare_specs(one, two):
        # A tape that was recorded and later replayed is shown the same way.
        same_tape = name == "tape" and show_setting(left) == show_setting(right)
        if name.partition(".")[0] not in _NO_CAUTION and not same_tape:
            yield f"{name}: {show_setting(left)} and {show_setting(right)}"


def find_shared_tasks(first: ComparedRun, second: ComparedRun) -> set[str]:
    """Return the tasks of both runs that have the same prompt and scoring in both.

    With one dataset, these are all common tasks. With two datasets, tasks are compared by the
    digests of their units; a task without units counts as the same, so that it is reported as
    missing, unless no task is known to be the same.
    """
    common = {*first.manifest.spec.tasks} & {*second.manifest.spec.tasks}
    if first.manifest.dataset_digest == second.manifest.dataset_digest:
        return common
    changed = find_changed_tasks(first, second)
    known_alike = _both_digests(first, second).keys() - changed
    return common - changed if known_alike else set()


def find_changed_tasks(first: ComparedRun, second: ComparedRun) -> set[str]:
    """Return the tasks of both runs whose prompt or scoring differs between the datasets."""
    if first.manifest.dataset_digest == second.manifest.dataset_digest:
        return set()
    both = _both_digests(first, second)
    return {task for task, (one, two) in both.items() if not one.agrees(two)}


def describe_shared(first: ComparedRun, second: ComparedRun) -> SharedTasks | None:
    """Return what two versions of a dataset share; None if both runs have the same one."""
    if first.manifest.dataset_digest == second.manifest.dataset_digest:
        return None
    checked = _checked_leaves(first) | _checked_leaves(second)
    needs: dict[str, list[str]] = {"rescore": [], "judge": [], "run": []}
    both = _both_digests(first, second)
    leaves = n_leaves = 0
    for task, (one, two) in both.items():
        found = two.changes(one)
        other = {*found.leaves, *found.gone}
        # An Atomic run keeps its own reference.
        if found.asks or (other and two.weighs is None):
            needs["run"].append(task)
            continue
        every = {*one.leaf, *two.leaf}
        leaves, n_leaves = leaves + len(every - other), n_leaves + len(every)
        if any((task, leaf) not in checked for leaf in other):
            needs["judge"].append(task)
        elif other or found.weighs:
            needs["rescore"].append(task)
    same = len(both) - sum(map(len, needs.values()))
    return SharedTasks(
        same=same,
        common=len(both),
        leaves=leaves,
        n_leaves=n_leaves,
        **{name: tuple(sorted(tasks)) for name, tasks in needs.items()},
    )


def _checked_leaves(run: ComparedRun) -> set[tuple[str, str]]:
    """Return the leaves that code decided, by task."""
    if not isinstance(run.scores, WorkflowScores):
        return set()
    return {
        (task.task, leaf.leaf)
        for judge in run.scores.judges
        for task in judge.tasks
        for leaf in task.leaves
        if leaf.by is not None
    }


def find_common_judges(first: ComparedRun, second: ComparedRun) -> tuple[str, ...]:
    """Return the names of the judges that scored both runs; a name includes all options."""
    return tuple(sorted(set(list_judges(first)) & set(list_judges(second))))


def _refusals(first: ComparedRun, second: ComparedRun, *, paired: bool) -> Iterator[str]:
    one, two = first.manifest, second.manifest
    if one.spec.dataset != two.spec.dataset:
        yield _differ("datasets", one.spec.dataset, two.spec.dataset)
        return
    if one.spec.mode != two.spec.mode:
        yield _differ("modes", one.spec.mode, two.spec.mode)
    if first.scores.scoring_version != second.scores.scoring_version:
        versions = (first.scores.scoring_version, second.scores.scoring_version)
        yield f"{_differ('scoring versions', *versions)}; run `gta score` on both"
    if isinstance(first.scores, WorkflowScores) and isinstance(second.scores, WorkflowScores):
        yield from _judge_refusals(first, second)
        ends = [(one.leaf_threshold, one.root_threshold) for one in (first.scores, second.scores)]
        if ends[0] != ends[1]:
            yield f"{_differ('thresholds', *ends)}; run `gta score` on both"
    if isinstance(first.scores, RunScores) and isinstance(second.scores, RunScores):
        likeness = first.scores.similarity, second.scores.similarity
        if likeness[0] != likeness[1]:
            yield f"{_differ('similarity models', *likeness)}; run `gta score` on both"
    if paired:
        yield from _task_refusals(first, second)


def _task_refusals(first: ComparedRun, second: ComparedRun) -> Iterator[str]:
    one, two = first.manifest, second.manifest
    if not set(one.spec.tasks) & set(two.spec.tasks):
        yield "the runs have no task in common"
    elif not find_shared_tasks(first, second):
        digests = one.dataset_digest[:12], two.dataset_digest[:12]
        yield (
            f"{_differ('dataset digests', *digests)} and no task is the same in both; "
            "`gta data diff OLD NEW RUN` shows what changed"
        )


def _judge_refusals(first: ComparedRun, second: ComparedRun) -> Iterator[str]:
    unseen = [run.name for run in (first, second) if not list_judges(run)]
    if unseen:
        yield f"no judge has scored {unseen[0]}; run `gta score {unseen[0]} --judge MODEL`"
    elif not find_common_judges(first, second):
        yield _differ("judges", *(", ".join(list_judges(run)) for run in (first, second)))
    for judge in find_common_judges(first, second):
        asked = first.judge_prompts.get(judge, ()), second.judge_prompts.get(judge, ())
        # A run may have verdicts of two prompts if its second judging was interrupted.
        if len({*asked[0], *asked[1]}) > 1:
            yield f"the prompts of {judge} differ; judge both again"


def _both_digests(
    first: ComparedRun, second: ComparedRun
) -> dict[str, tuple[TaskDigests, TaskDigests]]:
    one, two = (
        {task: unit.digests for (task, _), unit in run.units.items() if unit.digests is not None}
        for run in (first, second)
    )
    return {task: (one[task], two[task]) for task in one if task in two}


def list_judges(run: ComparedRun) -> tuple[str, ...]:
    """Return the names of the judges that scored a run."""
    scores = run.scores
    if isinstance(scores, WorkflowScores):
        return tuple(judge.judge for judge in scores.judges)
    return ()


def is_plain_twin(plain: RunManifest, controlled: RunManifest) -> bool:
    """Return whether two runs differ only by the control: same system, data and tool replies."""
    tapes = [run.spec.tape and run.spec.tape.digest for run in (plain, controlled)]
    return (
        not plain.spec.controls
        and bool(controlled.spec.controls)
        and all(
            getattr(plain.spec, name) == getattr(controlled.spec, name)
            for name in ("dataset", "mode", "system")
        )
        and plain.dataset_digest == controlled.dataset_digest
        and plain.prompts == controlled.prompts
        and tapes[0] == tapes[1]
    )


def measure_control_effect(plain: RunScores, controlled: RunScores) -> ControlEffect:
    """Compare a run under a control with the plain run, over the solvable units of both."""
    values = {(unit.task, unit.epoch): value for unit, value in _unit_values(plain)}
    tasks = tuple(
        TaskEffect(
            task=unit.task,
            epoch=unit.epoch,
            plain=values[unit.task, unit.epoch],
            controlled=value,
            disturbance=unit.disturbance,
        )
        for unit, value in _unit_values(controlled)
        if (unit.task, unit.epoch) in values
    )
    hit = [task for task in tasks if task.hit]
    return ControlEffect(
        units=len(tasks),
        solved_plain=sum(task.solved[0] for task in tasks),
        solved_controlled=sum(task.solved[1] for task in tasks),
        kept=sum(task.kept for task in tasks),
        lost=sum(task.lost for task in tasks),
        won=sum(task.solved == (False, True) for task in tasks),
        hit=len(hit),
        hit_solved_plain=sum(task.solved[0] for task in hit),
        hit_kept=sum(task.kept for task in hit),
        disturbance=add_counts(Disturbance, [task.disturbance for task in tasks]),
        tasks=tasks,
    )


def _unit_values(scores: RunScores) -> Iterator[tuple[UnitScore, float]]:
    for unit in scores.units:
        if isinstance(unit.strict, StrictEndToEndCounts):
            value, whole = ANS_ACC_I.part(unit.strict)
            if whole:
                yield unit, min(1.0, value)


def _differ(what: str, one: object, two: object) -> str:
    return f"the {what} differ ({one} and {two})"
