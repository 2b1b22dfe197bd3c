"""Two runs compared task by task: differences with intervals, tests, and what each took."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from gta_bench.errors import RunError
from gta_bench.metrics.comparability import cautions, common_judges, refusals
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.comparison import (
    ComparedRun,
    Comparison,
    EvidenceDifference,
    MetricDifference,
    ToolDifference,
)
from gta_bench.records.scores import (
    Category,
    StrictEndToEndCounts,
    StrictStepCounts,
    UnitScore,
)
from gta_bench.records.statistics import DifferenceTest, Interval
from gta_bench.records.workflow_scores import JudgeScores, TaskScore, WorkflowScores
from gta_bench.statistics.bootstrap import Ratio, clustered_difference
from gta_bench.statistics.paired import holm, mcnemar, paired_permutation

SEED: Final = 20260417
Counts = TypeVar("Counts")
Key = tuple[str, int]
Part = tuple[float, float]
Parts = Mapping[Key, Part]
STEP: Final[Mapping[str, Callable[[StrictStepCounts], Part]]] = {
    "InstAcc": lambda one: (one.inst_hits, one.inst_total),
    "ToolAcc": lambda one: (one.tool_hits, one.call_total),
    "ArgAcc": lambda one: (one.arg_hits, one.call_total),
    "typed": lambda one: (one.arg_typed_sum, one.call_total),
    "SummAcc": lambda one: (one.answer_sum, one.answer_total),
}


def _f1(category: Category) -> Callable[[StrictEndToEndCounts], Part]:
    def part(one: StrictEndToEndCounts) -> Part:
        counts = one.categories[category]
        return 2 * counts.hits, counts.gold + counts.predicted

    return part


END_TO_END: Final[Mapping[str, Callable[[StrictEndToEndCounts], Part]]] = {
    "AnsAcc+I": lambda one: (one.answer_sum + one.image_sum, one.answer_i_total),
    "AnsAcc": lambda one: (one.answer_sum, one.answer_total),
    "P-F1": _f1("perception"),
    "O-F1": _f1("operation"),
    "L-F1": _f1("logic"),
    "C-F1": _f1("creativity"),
}


class Measured(NamedTuple):
    """A metric of both runs, unit by unit; `top` is its highest value before scaling."""

    name: str
    first: Parts
    second: Parts
    top: float = 1.0
    scale: float = 100.0


def compare(runs: Sequence[ComparedRun]) -> tuple[Comparison, ...]:
    """The first run against each other one; refused where they do not measure the same."""
    first, *others = runs
    for other in others:
        if reasons := refusals(first, other):
            raise RunError(
                f"{first.name} and {other.name} cannot be compared: {'; '.join(reasons)}."
            )
    compared = [_compare(first, other) for other in others]
    return _corrected(compared)


def _compare(first: ComparedRun, second: ComparedRun) -> Comparison:
    scores = list(_measured(first, second))
    keys = _kept(scores[0].first.keys(), scores[0].second.keys(), first, second)
    if not keys:
        raise RunError(
            f"{first.name} and {second.name} cannot be compared: no task has a score in both."
        )
    tasks = {task for task, _ in keys}
    everything = {*first.manifest.tasks, *second.manifest.tasks}
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
    )


def _natural(task: str) -> tuple[int, str]:
    return len(task), task


def _kept(
    first: Iterable[Key], second: Iterable[Key], one: ComparedRun, two: ComparedRun
) -> set[Key]:
    """Units of both runs; where one was repeated more often, all units of the tasks of both."""
    left, right = set(first), set(second)
    if one.manifest.epochs == two.manifest.epochs:
        return left & right
    tasks = {task for task, _ in left} & {task for task, _ in right}
    return {key for key in left | right if key[0] in tasks}


def _measured(first: ComparedRun, second: ComparedRun) -> Iterator[Measured]:
    """The headline stands first."""
    one, two = first.scores, second.scores
    if isinstance(one, WorkflowScores) and isinstance(two, WorkflowScores):
        for name in common_judges(first, second):
            yield from _judged(one, two, name)
        yield Measured("Tool SR", _tool_parts(first), _tool_parts(second))
        return
    assert not isinstance(one, WorkflowScores) and not isinstance(two, WorkflowScores)
    if one.mode == "step":
        for name, step in STEP.items():
            yield Measured(
                name,
                _counted(one.units, StrictStepCounts, step),
                _counted(two.units, StrictStepCounts, step),
            )
    else:
        for name, part in END_TO_END.items():
            yield Measured(
                name,
                _counted(one.units, StrictEndToEndCounts, part),
                _counted(two.units, StrictEndToEndCounts, part),
            )


def _counted(
    units: Iterable[UnitScore], kind: type[Counts], part: Callable[[Counts], Part]
) -> Parts:
    return {
        (unit.task, unit.epoch): part(unit.strict)
        for unit in units
        if isinstance(unit.strict, kind)
    }


def _judged(one: WorkflowScores, two: WorkflowScores, name: str) -> Iterator[Measured]:
    """A judge's figures over the units whose every leaf it scored."""
    tables = [scores.table(name) for scores in (one, two)]
    rooted = [_rooted(table) for table in tables if table is not None]
    first, second = rooted

    def parts(value: Callable[[TaskScore], Part]) -> tuple[Parts, Parts]:
        return (
            {key: value(task) for key, task in first.items()},
            {key: value(task) for key, task in second.items()},
        )

    def root(task: TaskScore) -> float:
        assert task.root is not None
        return task.root

    def passed(task: TaskScore) -> Part:
        values = [leaf.value for leaf in task.leaves if leaf.value is not None]
        return sum(succeeds(value, one.leaf_threshold) for value in values), len(values)

    by = f", {name}"
    yield Measured(f"Root score{by}", *parts(lambda task: (root(task), 1)), top=10, scale=1)
    yield Measured(
        f"Root SR{by}", *parts(lambda task: (succeeds(root(task), one.root_threshold), 1))
    )
    yield Measured(f"Leaf SR{by}", *parts(passed))


def _rooted(table: JudgeScores) -> dict[Key, TaskScore]:
    return {(task.task, task.epoch): task for task in table.tasks if task.root is not None}


def _tool_parts(run: ComparedRun) -> Parts:
    return {
        key: (
            sum(use.done for use in unit.tools),
            sum(use.done + use.error + use.unavailable for use in unit.tools),
        )
        for key, unit in run.units.items()
    }


def _took(first: ComparedRun, second: ComparedRun, keys: set[Key]) -> Iterator[Measured]:
    """Means over the same units that the scores are made from; cost only where all is priced.

    What is zero in every unit of a run was not recorded, as with finished results.
    """
    for name, field in (
        ("seconds a task", "seconds"),
        ("input tokens a task", "input_tokens"),
        ("output tokens a task", "output_tokens"),
        ("model calls a task", "model_calls"),
        ("dollars a task", "cost_usd"),
    ):
        sides = [
            {
                key: (float(value), 1.0)
                for key, unit in run.units.items()
                if key in keys and (value := getattr(unit.usage, field)) is not None
            }
            for run in (first, second)
        ]
        most = [max((value for value, _ in side.values()), default=0.0) for side in sides]
        whole = [keys & run.units.keys() for run in (first, second)]
        if min(most) > 0 and [side.keys() for side in sides] == whole:
            yield Measured(name, sides[0], sides[1], top=max(most), scale=1)


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
    test = _test(*ratios)
    interval = clustered_difference(ratios[0], ratios[1], seed=SEED, top=one.top)
    return MetricDifference(
        metric=one.name,
        first=ratios[0].value * one.scale,
        second=ratios[1].value * one.scale,
        difference=_scaled(interval, one.scale),
        p_value=test.p_value,
        p_holm=test.p_value,
        test=test.method,
    )


def _by_task(parts: Parts, keys: set[Key]) -> dict[str, Part]:
    summed: dict[str, Part] = {}
    for key in sorted(keys & parts.keys()):
        above, below = summed.get(key[0], (0.0, 0.0))
        summed[key[0]] = (above + parts[key][0], below + parts[key][1])
    return summed


def _ratio(side: Mapping[str, Part], tasks: Sequence[str]) -> Ratio:
    return Ratio([side[task][0] for task in tasks], [side[task][1] for task in tasks])


def _test(first: Ratio, second: Ratio) -> DifferenceTest:
    """McNemar's where every task is passed or not, else swaps of whole tasks."""
    both = (first, second)
    yes_or_no = all(
        set(side.numerators) <= {0, 1} and set(side.denominators) == {1} for side in both
    )
    if yes_or_no:
        return mcnemar(
            [one > 0 for one in first.numerators], [two > 0 for two in second.numerators]
        )
    return paired_permutation(first, second, seed=SEED)


def _scaled(interval: Interval, scale: float) -> Interval:
    return interval.model_copy(
        update={name: getattr(interval, name) * scale for name in ("estimate", "low", "high")}
    )


def _per_dollar(run: ComparedRun, parts: Parts, keys: set[Key]) -> float | None:
    costs = [run.units[key].usage.cost_usd for key in keys if key in run.units]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs) or not sum(known):
        return None
    return sum(parts[key][0] for key in keys if key in parts) / sum(known)


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
