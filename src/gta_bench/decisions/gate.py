"""Decides whether a system got worse: one metric, a margin, and outcomes of two runs by task."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from gta_bench.decisions.comparison import ROUNDING, natural_order
from gta_bench.errors import RunError, UsageError, suggest_name
from gta_bench.metrics import table
from gta_bench.metrics.comparability import find_prompt_cautions, find_setting_cautions, list_judges
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.metrics.table import Metric
from gta_bench.records.comparison import ALPHA, ComparedRun
from gta_bench.records.digests import TaskDigests, content_digest
from gta_bench.records.gate import (
    GateFlip,
    GateResult,
    Repeats,
    RunOutcomes,
    Steadiness,
    TaskOutcomes,
)
from gta_bench.records.run import RunMode
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.estimates import Part, Parts, make_atomic_parts, make_judged_parts
from gta_bench.statistics.gate import (
    decide_bounded,
    decide_fixed,
    decide_sequential,
    find_lower_bound,
    shuffle_tasks,
)

# Metrics whose denominator is fixed by the task, so that each task has a value in every run.
METRICS: Final[Mapping[RunMode, tuple[str, ...]]] = {
    "step": ("arg_acc", "inst_acc", "tool_acc", "summ_acc", "arg_typed"),
    "end-to-end": ("ans_acc", "ans_acc_i"),
    "workflow": ("root_sr", "root_score", "leaf_sr"),
}
# The margin if none is given, as a share of the metric's scale.
USUAL_MARGIN: Final = 0.1


class TaskPair(NamedTuple):
    """A task in both runs."""

    base: TaskOutcomes
    new: TaskOutcomes


def choose_metric(mode: RunMode, name: str | None) -> Metric[Any]:
    """Return the named metric of the gate, or the primary one."""
    known = METRICS[mode]
    if name is None:
        return table.primary(mode)
    if name not in known:
        raise UsageError(
            f"Unknown metric {name!r} of tasks{suggest_name(name, known)} "
            f"Metrics for {mode} runs: {', '.join(known)}."
        )
    return table.metric(name)


def refuse_other_kind(base: RunOutcomes, new: ComparedRun) -> None:
    """Raise if a run is not of the dataset and mode of BASE, whose metric it cannot have then."""
    kinds = [f"{spec.dataset}, {spec.mode}" for spec in (base.spec, new.manifest.spec)]
    if kinds[0] != kinds[1]:
        raise RunError(
            f"{base.name} and {new.name} cannot be compared: they are runs of {kinds[0]} and of "
            f"{kinds[1]}."
        )


def read_outcomes(
    run: ComparedRun, metric: str | None = None, judge: str | None = None
) -> RunOutcomes:
    """Return the outcomes of a run by task and repeat, in the metric and by the judge."""
    manifest, scores = run.manifest, run.scores
    spec, row = manifest.spec, choose_metric(manifest.spec.mode, metric)
    leaves: dict[tuple[str, int], Mapping[str, float | None]] = {}
    thresholds = similarity = None
    if isinstance(scores, WorkflowScores):
        judge = _choose_judge(run, judge)
        judged = next(one for one in scores.judges if one.judge == judge)
        parts: Parts = make_judged_parts(judged.tasks, scores)[row.name]
        thresholds = scores.leaf_threshold, scores.root_threshold
        for one in judged.tasks:
            leaves[one.task, one.epoch] = {leaf.leaf: leaf.value for leaf in one.leaves}
    else:
        if judge is not None:
            raise UsageError(f"{run.name} is a run of GTA-Atomic, which no judge scores.")
        parts, similarity = make_atomic_parts(scores.units, [row.name])[row.name], scores.similarity
    digests = {task: unit.digests for (task, _), unit in run.units.items()}
    epochs = range(1, spec.epochs + 1)
    return RunOutcomes(
        name=run.name,
        metric=row.name,
        judge=judge,
        created=manifest.created,
        spec=spec,
        dataset_digest=manifest.dataset_digest,
        scoring_version=scores.scoring_version,
        similarity=similarity,
        thresholds=thresholds,
        judge_prompts=run.judge_prompts.get(judge or "", ()),
        prompts=manifest.prompts,
        packages=manifest.packages,
        tasks=tuple(
            TaskOutcomes(
                task=task,
                values=_find_values([parts.get((task, epoch)) for epoch in epochs], row.top),
                leaves=_find_leaves([leaves.get((task, epoch), {}) for epoch in epochs]),
                digest=digest_task(digests.get(task)),
            )
            for task in spec.tasks
        ),
    )


def _choose_judge(run: ComparedRun, judge: str | None) -> str:
    known = list_judges(run)
    if not known:
        raise RunError(f"No judge has scored {run.name}; run `gta score {run.name} --judge MODEL`.")
    if judge is None and len(known) > 1:
        raise UsageError(f"Several judges scored {run.name}; choose one of: {'; '.join(known)}.")
    if judge is not None and judge not in known:
        raise UsageError(f"{judge!r} has not scored {run.name}; its judges: {'; '.join(known)}.")
    return judge or known[0]


def _find_values(units: Sequence[Part | None], top: float) -> Repeats:
    """Return the share of each repeat; nothing if the task has nothing to measure."""
    if any(one is not None and not one.seen and not one.missing for one in units):
        return ()
    return tuple(
        None if one is None or one.missing else min(1.0, one.value / (one.seen * top))
        for one in units
    )


def _find_leaves(units: Sequence[Mapping[str, float | None]]) -> dict[str, Repeats]:
    names = dict.fromkeys(name for unit in units for name in unit)
    return {name: tuple(unit.get(name) for unit in units) for name in names}


def digest_task(digests: TaskDigests | None) -> str | None:
    """Return one digest for everything that decides the outcome of a task; None if unknown."""
    if digests is None:
        return None
    return content_digest(digests.model_dump(mode="json", exclude={"proofs"}))


def decide_gate(
    base: RunOutcomes,
    new: RunOutcomes,
    *,
    margin: float | None = None,
    sequential: bool = False,
    seed: str | None = None,
    unused: Sequence[str] = (),
) -> GateResult:
    """Decide whether the second run is worse; `margin` is in points of the metric.

    A task without a score counts with every value that it could have: the decision is None if that
    matters. A sequential test takes the tasks in a random order, by default another one for every
    pair of runs. `unused` are tasks without a score at the end of that order: if the decision
    depends on nothing else, it is undecided so far.
    """
    refuse_unlike(base, new)
    row = table.metric(base.metric)
    scale, points = find_scale(base), choose_margin(base, margin)
    seed = (seed or f"{base.created} {new.created}") if sequential else None
    pairs, left_out = pair_tasks(base, new)
    if seed is not None:
        pairs = {task: pairs[task] for task in shuffle_tasks([*pairs], seed)}
    ends = [bound_drop(*pair) for pair in pairs.values()]
    decide = decide_fixed if seed is None else decide_sequential
    test = decide_bounded(ends, margin=points / scale, decide=decide)
    low, high = (None, None) if seed is not None else _limit_drop(ends)
    lacking = (task for task, pair in pairs.items() if _is_lacking(pair))
    missing = tuple(task for task in lacking if task not in unused)
    means = [both for pair in pairs.values() if (both := _means(pair)) is not None]
    before, after = (scale * fmean(side) for side in zip(*means, strict=True)) if means else (0, 0)
    return GateResult(
        base=base.name,
        new=new.name,
        metric=row.name,
        label=row.label,
        judge=base.judge,
        margin=points,
        most=scale,
        alpha=ALPHA,
        seed=seed,
        tasks=tuple(pairs),
        repeats=(base.spec.epochs, new.spec.epochs),
        missing=missing,
        unused=tuple(unused),
        left_out=left_out,
        base_value=before if means else None,
        new_value=after if means else None,
        low=None if low is None else scale * low,
        high=None if high is None else scale * high,
        p_worse=max(one.p_worse for one in test),
        p_margin=max(one.p_margin for one in test),
        used=min(test.used, len(pairs) - len(unused)),
        decision="undecided" if test.decision is None and unused and not missing else test.decision,
        flips=_find_flips(pairs, base, scale),
        flaky=tuple(_list_flaky(pairs, base)),
        cautions=tuple(_find_cautions(base, new)),
    )


def find_scale(run: RunOutcomes) -> float:
    """Return the highest value of the metric, in points."""
    row = table.metric(run.metric)
    return row.top * row.factor


def choose_margin(run: RunOutcomes, margin: float | None) -> float:
    """Return the margin in points, or the usual one; raise if it is not on the metric's scale."""
    scale = find_scale(run)
    points = USUAL_MARGIN * scale if margin is None else margin
    if not 0 <= points < scale:
        raise UsageError(f"A margin of {points:g} is not from 0 to below {scale:g} points.")
    return points


def refuse_unlike(base: RunOutcomes, new: RunOutcomes) -> None:
    """Raise if the outcomes of the runs do not measure the same."""
    if reasons := list(_find_refusals(base, new)):
        raise RunError(f"{base.name} and {new.name} cannot be compared: {'; '.join(reasons)}.")


def _find_refusals(base: RunOutcomes, new: RunOutcomes) -> Iterator[str]:
    """Yield the reasons why the outcomes do not measure the same."""
    facts: tuple[tuple[str, object, object], ...] = (
        ("datasets", base.spec.dataset, new.spec.dataset),
        ("modes", base.spec.mode, new.spec.mode),
        ("metrics", base.metric, new.metric),
        ("judges", base.judge, new.judge),
    )
    for what, one, two in facts:
        if one != two:
            yield f"the {what} differ ({one} and {two})"
            return
    scored: tuple[tuple[str, object, object], ...] = (
        ("scoring versions", base.scoring_version, new.scoring_version),
        ("thresholds", base.thresholds, new.thresholds),
        ("similarity models", base.similarity, new.similarity),
    )
    for what, one, two in scored:
        if one != two:
            yield f"the {what} differ ({one} and {two}); run `gta score` on both"
    if len({*base.judge_prompts, *new.judge_prompts}) > 1:
        yield f"the prompts of {base.judge} differ; judge both again"
    if base.model_copy(update={"name": new.name}) == new:
        yield "they are the same run, or copies of it; name two runs"
    elif not pair_tasks(base, new)[0]:
        yield "no task with this metric is the same in both"


def pair_tasks(base: RunOutcomes, new: RunOutcomes) -> tuple[dict[str, TaskPair], tuple[str, ...]]:
    """Return the tasks that ask and score the same in both, and those of only one run or changed.

    Tasks that have nothing to measure are neither.
    """
    one, two = ({own.task: own for own in run.tasks} for run in (base, new))
    same_data = base.dataset_digest == new.dataset_digest
    pairs: dict[str, TaskPair] = {}
    left_out = {*one} ^ {*two}
    for task in sorted({*one} & {*two}, key=natural_order):
        pair = TaskPair(one[task], two[task])
        digests = {own.digest for own in pair} - {None}
        if not same_data and len(digests) > 1:
            left_out.add(task)
        elif all(own.values for own in pair):
            pairs[task] = pair
    return pairs, tuple(sorted(left_out, key=natural_order))


def bound_drop(base: TaskOutcomes, new: TaskOutcomes) -> tuple[float, float]:
    """Return the smallest and the largest drop, whatever the repeats without a score are."""
    sides = [
        tuple(fmean(end if one is None else one for one in own.values) for end in (0.0, 1.0))
        for own in (base, new)
    ]
    return sides[0][0] - sides[1][1], sides[0][1] - sides[1][0]


def _limit_drop(ends: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the one-sided limits of the mean drop."""
    least, most = zip(*ends, strict=True)
    return find_lower_bound(least), -find_lower_bound([-one for one in most])


def _is_lacking(pair: TaskPair) -> bool:
    return any(one is None for own in pair for one in own.values)


def _mean(values: Repeats) -> float | None:
    known = [one for one in values if one is not None]
    return fmean(known) if known else None


def _means(pair: TaskPair) -> tuple[float, float] | None:
    base, new = (_mean(own.values) for own in pair)
    return None if base is None or new is None else (base, new)


def _find_flips(
    pairs: Mapping[str, TaskPair], base: RunOutcomes, scale: float
) -> tuple[GateFlip, ...]:
    """Return what differs: tasks first, then leaves, and of both the worst ones first."""
    found = []
    for task, pair in pairs.items():
        found.append(_find_flip(task, None, pair.base.values, pair.new.values, scale))
        for leaf, before in pair.base.leaves.items():
            after = pair.new.leaves.get(leaf, ())
            found.append(_find_flip(task, leaf, _pass(before, base), _pass(after, base), 100.0))
    flips = [one for one in found if one is not None]
    flips.sort(key=lambda one: (one.leaf is not None, one.new - one.base, natural_order(one.task)))
    return tuple(flips)


def _find_flip(
    task: str, leaf: str | None, base: Repeats, new: Repeats, scale: float
) -> GateFlip | None:
    before, after = _mean(base), _mean(new)
    if before is None or after is None or abs(before - after) <= ROUNDING:
        return None
    sign = 1 if after < before else -1
    known = [(sign * value, place) for place, value in enumerate(new, start=1) if value is not None]
    return GateFlip(
        task=task,
        leaf=leaf,
        base=scale * before,
        new=scale * after,
        base_repeats=_find_steadiness(base),
        epoch=min(known)[1],
    )


def _pass(values: Repeats, run: RunOutcomes) -> Repeats:
    """Return 1 for each repeat in which a leaf passes, and 0 for the others."""
    assert run.thresholds is not None
    least = run.thresholds[0]
    return tuple(None if one is None else float(succeeds(one, least)) for one in values)


def _find_steadiness(values: Repeats) -> Steadiness:
    known = [one for one in values if one is not None]
    if len(known) < 2:
        return "unknown"
    return "flaky" if max(known) - min(known) > ROUNDING else "steady"


def _list_flaky(pairs: Mapping[str, TaskPair], base: RunOutcomes) -> Iterator[str]:
    """Yield the leaves of BASE that pass in some repeats only; tasks if there are no leaves."""
    for task, pair in pairs.items():
        if not pair.base.leaves and _find_steadiness(pair.base.values) == "flaky":
            yield task
        for leaf, values in pair.base.leaves.items():
            if _find_steadiness(_pass(values, base)) == "flaky":
                yield f"{task} / {leaf}"


def _find_cautions(base: RunOutcomes, new: RunOutcomes) -> Iterator[str]:
    yield from find_setting_cautions(base.spec, new.spec)
    yield from find_prompt_cautions(base.prompts, new.prompts)


def format_baseline(run: RunOutcomes) -> str:
    """Return the outcomes as JSON with a line for each task, so that changes are easy to read."""
    tasks = (own.model_dump_json(exclude_defaults=True) for own in run.tasks)
    head = run.model_dump_json(exclude={"tasks"}, indent=2).rstrip().removesuffix("}").rstrip()
    return f'{head},\n  "tasks": [\n    {f",{chr(10)}    ".join(tasks)}\n  ]\n}}\n'
