"""Two runs compared task by task: differences with intervals, tests, and what each took."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from gta_bench.errors import RunError
from gta_bench.metrics import table
from gta_bench.metrics.comparability import (
    cautions,
    changed_tasks,
    common_judges,
    refusals,
    shared_tasks,
)
from gta_bench.metrics.counts import JudgedCounts
from gta_bench.metrics.strict.workflow import count_judged
from gta_bench.metrics.table import Metric
from gta_bench.records.comparison import (
    ComparedRun,
    Comparison,
    EvidenceDifference,
    MetricDifference,
    ToolDifference,
)
from gta_bench.records.cost import Cost, paid_cost, recorded_cost, sum_costs
from gta_bench.records.run import RunMode
from gta_bench.records.scores import RunScores, UnitScore
from gta_bench.records.statistics import Interval
from gta_bench.records.units import Usage
from gta_bench.records.workflow_scores import JudgeScores, TaskScore, WorkflowScores
from gta_bench.reports.flips import find_flips
from gta_bench.reports.summary import is_foreign
from gta_bench.statistics.pooled import Ratio, difference_of
from gta_bench.statistics.ranks import holm

Key = tuple[str, int]
Part = tuple[float, float]
Parts = Mapping[Key, Part]
# The metrics that stand first in the table of a mode, the headline at the top. The others follow
# in the order of `metrics.table`.
FIRST: Final[Mapping[str, tuple[str, ...]]] = {
    "step": ("inst_acc", "tool_acc", "arg_acc", "arg_typed"),
    "end-to-end": ("ans_acc_i",),
}


class Measured(NamedTuple):
    """A metric of both runs, unit by unit; `top` is its highest value before scaling, if any."""

    name: str
    first: Parts
    second: Parts
    top: float | None = 1.0
    scale: float = 100.0


def compare(runs: Sequence[ComparedRun]) -> tuple[Comparison, ...]:
    """The first run against each other one; refused where they do not measure the same."""
    first, *others = runs
    for other in others:
        if reasons := refusals(first, other):
            raise RunError(
                f"{first.name} and {other.name} cannot be compared: {'; '.join(reasons)}."
            )
    compared = [_compare_shared(first, other) for other in others]
    return _corrected(compared)


def _compare_shared(first: ComparedRun, second: ComparedRun) -> Comparison:
    """The two on the tasks that are the same in both."""
    shared, changed = shared_tasks(first, second), changed_tasks(first, second)
    found = _compare(_only(first, shared), _only(second, shared))
    return found.model_copy(
        update={
            "left_out": tuple(task for task in found.left_out if task not in changed),
            "changed": tuple(sorted(changed, key=_natural)),
        }
    )


def _compare(first: ComparedRun, second: ComparedRun) -> Comparison:
    scores = list(_measured(first, second))
    keys = _kept(scores[0].first.keys(), scores[0].second.keys(), first, second)
    if not keys:
        raise RunError(
            f"{first.name} and {second.name} cannot be compared: no task has a score in both."
        )
    tasks = {task for task, _ in keys}
    everything = {*first.manifest.spec.tasks, *second.manifest.spec.tasks}
    return Comparison(
        first=first.name,
        second=second.name,
        tasks=len(tasks),
        left_out=tuple(task for task in sorted(everything, key=_natural) if task not in tasks),
        cautions=tuple(cautions(first, second)),
        metrics=_differences(scores, first, second),
        took=_differences(_took(first, second, keys), first, second),
        headline=scores[0].name,
        per_dollar=(
            _per_dollar(first, scores[0].first, keys),
            _per_dollar(second, scores[0].second, keys),
        ),
        tools=_tools(first, second, tasks),
        evidence=tuple(_evidence(first, second)),
        flips=find_flips(first, second),
    )


def _only(run: ComparedRun, tasks: set[str]) -> ComparedRun:
    """The run with what it has of these tasks."""
    scores: RunScores | WorkflowScores
    if isinstance(run.scores, WorkflowScores):
        judges = [_only_of(table, tasks) for table in run.scores.judges]
        scores = run.scores.model_copy(update={"judges": tuple(judges)})
    else:
        units = tuple(one for one in run.scores.units if one.task in tasks)
        scores = run.scores.model_copy(update={"units": units})
    kept = {key: unit for key, unit in run.units.items() if key[0] in tasks}
    return run.model_copy(update={"scores": scores, "units": kept})


def _only_of(judge: JudgeScores, tasks: set[str]) -> JudgeScores:
    return judge.model_copy(
        update={"tasks": tuple(one for one in judge.tasks if one.task in tasks)}
    )


def _natural(task: str) -> tuple[int, str]:
    return len(task), task


def _kept(
    first: Iterable[Key], second: Iterable[Key], one: ComparedRun, two: ComparedRun
) -> set[Key]:
    """Units of both runs; where one was repeated more often, all units of the tasks of both."""
    left, right = set(first), set(second)
    if one.manifest.spec.epochs == two.manifest.spec.epochs:
        return left & right
    tasks = {task for task, _ in left} & {task for task, _ in right}
    return {key for key in left | right if key[0] in tasks}


def _measured(first: ComparedRun, second: ComparedRun) -> Iterator[Measured]:
    """The headline stands first."""
    one, two = first.scores, second.scores
    if isinstance(one, WorkflowScores) and isinstance(two, WorkflowScores):
        for name in common_judges(first, second):
            yield from _judged(one, two, name)
        yield Measured(table.TOOL_SR.label, _tool_parts(first), _tool_parts(second))
        return
    assert not isinstance(one, WorkflowScores) and not isinstance(two, WorkflowScores)
    for row in _compared_rows(one.mode):
        yield Measured(row.label, _counted(one.units, row), _counted(two.units, row))


def _compared_rows(mode: RunMode) -> list[Metric[Any]]:
    rows = {row.name: row for row in table.score_metrics(mode) if row.denominator is not None}
    return [rows.pop(name) for name in FIRST[mode]] + list(rows.values())


def _counted(units: Iterable[UnitScore], row: Metric[Any]) -> Parts:
    return {(unit.task, unit.epoch): row.part(unit.strict) for unit in units}


def _judged(one: WorkflowScores, two: WorkflowScores, name: str) -> Iterator[Measured]:
    """A judge's figures over the units whose every leaf it scored."""
    tables = [scores.table(name) for scores in (one, two)]
    rooted = [_rooted(table) for table in tables if table is not None]
    first, second = rooted

    def counted(tasks: Mapping[Key, TaskScore]) -> dict[Key, JudgedCounts]:
        """Both sides by the thresholds of the first."""
        return {
            key: count_judged(
                [task], leaf_threshold=one.leaf_threshold, root_threshold=one.root_threshold
            )
            for key, task in tasks.items()
        }

    sides = counted(first), counted(second)
    for row in table.JUDGED.values():
        left, right = ({key: row.part(own) for key, own in side.items()} for side in sides)
        yield Measured(f"{row.label}, {name}", left, right, top=row.top, scale=row.factor)


def _rooted(table: JudgeScores) -> dict[Key, TaskScore]:
    return {(task.task, task.epoch): task for task in table.tasks if task.root is not None}


def _tool_parts(run: ComparedRun) -> Parts:
    return {key: table.TOOL_SR.part(unit.tools) for key, unit in run.units.items()}


def _took(first: ComparedRun, second: ComparedRun, keys: set[Key]) -> Iterator[Measured]:
    """Means over the same units that the scores are made from; cost only where all is priced.

    What is zero in every unit of a run was not recorded, as with finished results.
    """
    for row in table.TAKEN.values():
        sides = [
            {
                key: (float(value), 1.0)
                for key, unit in run.units.items()
                if key in keys
                for value, whole in (row.part(unit.usage),)
                if whole and not (row is table.COST and _cost(run, unit.usage).unknown)
            }
            for run in (first, second)
        ]
        most = [max((value for value, _ in side.values()), default=0.0) for side in sides]
        whole = [keys & run.units.keys() for run in (first, second)]
        if min(most) > 0 and [side.keys() for side in sides] == whole:
            yield Measured(row.label, sides[0], sides[1], top=None, scale=row.factor)


def _differences(
    measured: Iterable[Measured], first: ComparedRun, second: ComparedRun
) -> tuple[MetricDifference, ...]:
    found = (_difference(one, first, second) for one in measured)
    return tuple(one for one in found if one is not None)


def _difference(one: Measured, first: ComparedRun, second: ComparedRun) -> MetricDifference | None:
    """None where no task has anything to measure in both runs."""
    keys = _kept(one.first.keys(), one.second.keys(), first, second)
    left, right = _by_task(one.first, keys), _by_task(one.second, keys)
    tasks = [
        task
        for task in sorted(left.keys() & right.keys(), key=_natural)
        if left[task][1] or right[task][1]
    ]
    ratios = [_ratio(side, tasks) for side in (left, right)]
    if not all(sum(ratio.denominators) for ratio in ratios):
        return None
    if one.top is None and len(tasks) < 2:  # no limit, no repetition: nothing to say
        return None
    found = difference_of(ratios[0], ratios[1], top=one.top)
    return MetricDifference(
        metric=one.name,
        first=ratios[0].value * one.scale,
        second=ratios[1].value * one.scale,
        difference=_scaled(found.interval, one.scale),
        p_value=found.p_value,
        p_holm=found.p_value,
        effective=found.effective,
        detectable=found.detectable * one.scale,
    )


def _by_task(parts: Parts, keys: set[Key]) -> dict[str, Part]:
    """The mean over the epochs of each task: one that was run more often does not count more."""
    found: dict[str, list[Part]] = {}
    for key in sorted(keys & parts.keys()):
        found.setdefault(key[0], []).append(parts[key])
    return {
        task: (fmean(above for above, _ in own), fmean(below for _, below in own))
        for task, own in found.items()
    }


def _ratio(side: Mapping[str, Part], tasks: Sequence[str]) -> Ratio:
    return Ratio([side[task][0] for task in tasks], [side[task][1] for task in tasks])


def _scaled(interval: Interval, scale: float) -> Interval:
    return interval.model_copy(
        update={name: getattr(interval, name) * scale for name in ("estimate", "low", "high")}
    )


def _per_dollar(run: ComparedRun, parts: Parts, keys: set[Key]) -> float | None:
    used = (run.units[key].usage for key in keys if key in run.units)
    cost = sum_costs(_cost(run, one) for one in used).total
    return sum(parts[key][0] for key in keys if key in parts) / cost if cost else None


def _cost(run: ComparedRun, usage: Usage) -> Cost:
    """What a unit cost; a foreign system that states nothing may have paid all the same."""
    foreign = is_foreign(run.manifest.spec.system)
    return paid_cost(usage.cost_usd) if foreign else recorded_cost(usage)


def _tools(first: ComparedRun, second: ComparedRun, tasks: set[str]) -> tuple[ToolDifference, ...]:
    counts = [_calls(run, tasks) for run in (first, second)]
    names = sorted(counts[0].keys() | counts[1].keys())
    found = [
        ToolDifference(
            tool=name,
            first_done=counts[0].get(name, (0, 0))[0],
            first_failed=counts[0].get(name, (0, 0))[1],
            second_done=counts[1].get(name, (0, 0))[0],
            second_failed=counts[1].get(name, (0, 0))[1],
        )
        for name in names
    ]
    return tuple(sorted(found, key=lambda one: -one.first_done - one.second_done))


def _calls(run: ComparedRun, tasks: set[str]) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for (task, _), unit in run.units.items():
        if task in tasks:
            for use in unit.tools:
                done, failed = counts.get(use.tool, (0, 0))
                counts[use.tool] = (done + use.done, failed + use.error + use.unavailable)
    return counts


def _evidence(first: ComparedRun, second: ComparedRun) -> Iterator[EvidenceDifference]:
    one, two = first.scores, second.scores
    if not isinstance(one, WorkflowScores) or not isinstance(two, WorkflowScores):
        return
    for judge in common_judges(first, second):
        # An empty digest is that of stored verdicts whose evidence nobody kept.
        shown = [
            {key: digest for key, unit in run.units.items() if (digest := unit.evidence.get(judge))}
            for run in (first, second)
        ]
        common = shown[0].keys() & shown[1].keys()
        same = {key for key in common if shown[0][key] == shown[1][key]}
        roots = [
            {(task.task, task.epoch): task.root for task in table.tasks}
            for scores in (one, two)
            if (table := scores.table(judge)) is not None
        ]
        yield EvidenceDifference(
            judge=judge,
            units=len(common),
            same=len(same),
            same_but_scored_otherwise=sum(roots[0].get(key) != roots[1].get(key) for key in same),
        )


def _corrected(compared: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Holm's correction over all metrics of all pairs: many looks, one chance of a false alarm."""
    tests = [one for comparison in compared for one in (*comparison.metrics, *comparison.took)]
    adjusted = iter(holm([one.p_value for one in tests]))

    def with_holm(found: Iterable[MetricDifference]) -> tuple[MetricDifference, ...]:
        return tuple(one.model_copy(update={"p_holm": next(adjusted)}) for one in found)

    return tuple(
        comparison.model_copy(
            update={"metrics": with_holm(comparison.metrics), "took": with_holm(comparison.took)}
        )
        for comparison in compared
    )
