"""Compare a judge with people on the leaves that they labeled."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gta_bench.judge_quality.paired_judges import by_task, shift, signed_cells
from gta_bench.metrics.labels import People
from gta_bench.metrics.panel import LeafKey
from gta_bench.metrics.strict.workflow import root_score, succeeds
from gta_bench.metrics.table import JUDGED, LEAF_SR, ROOT_SCORE, ROOT_SR
from gta_bench.metrics.workflow_scores import NO_CATEGORY, NOT_DELIVERED
from gta_bench.records.agreement import Bias, Calibration, CorrectedScore
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import JudgeScores, TaskScore, WorkflowScores
from gta_bench.reports.tables import Table, format_number
from gta_bench.statistics.agreement import compute_ac1, compute_kappa, mark_passed
from gta_bench.statistics.pooled import Ratio, compute_interval
from gta_bench.statistics.prediction import JudgedPart, estimate_difference, estimate_rate


class _Pair(NamedTuple):
    task: TaskScore
    judge: float
    people: float


def calibrate(
    judge: JudgeScores, people: People, units: Sequence[WorkflowUnit], scores: WorkflowScores
) -> Calibration | None:
    """Measure a judge against the labels; None if it scored none of the labeled leaves."""
    pairs = [
        _Pair(task, leaf.value, label)
        for task in judge.tasks
        for leaf in task.leaves
        if (label := people.settled.get((task.task, task.epoch, leaf.leaf))) is not None
        and leaf.value is not None
    ]
    if not pairs:
        return None
    threshold = scores.leaf_threshold
    tasks = [one.task.task for one in pairs]
    sides = [mark_passed((one.judge, one.people), threshold) for one in pairs]
    both = sum(seen * wanted for seen, wanted in sides)
    return Calibration(
        judge=judge.judge,
        leaves=len(pairs),
        tasks=len(set(tasks)),
        accuracy=_accuracy(pairs, threshold),
        kappa=compute_kappa(sides, tasks, top=1),
        ac1=compute_ac1(sides, tasks),
        score_kappa=compute_kappa([(one.judge, one.people) for one in pairs], tasks),
        precision=_share(both, sum(seen for seen, _ in sides)),
        recall=_share(both, sum(wanted for _, wanted in sides)),
        f1=_f1(tasks, sides),
        bias=_bias(pairs),
        groups=tuple(_groups(pairs, threshold)),
        scores=tuple(correct_scores(collect_judged_parts(judge, people, units, scores))),
    )


def figure_table(found: Sequence[Calibration]) -> Table:
    """Return a row for each judge: how well it agrees with people."""
    return Table(
        (
            *("judge", "leaves", "tasks", "accuracy", "95 %", "kappa", "95 %", "AC1", "95 %"),
            *("F1", "95 %", "score kappa", "95 %", "bias", "95 %"),
        ),
        tuple(
            (
                one.judge,
                str(one.leaves),
                str(one.tasks),
                *_accuracy_cells(one.accuracy),
                *_interval_cells(one.kappa, one.ac1, one.f1, one.score_kappa),
                *signed_cells(one.bias),
            )
            for one in found
        ),
    )


def correction_table(found: Mapping[str, Sequence[CorrectedScore]]) -> Table:
    """Return each judge's scores, raw and corrected with the labeled tasks."""
    return Table(
        ("judge", "score", "raw", "corrected", "95 %", "labeled tasks", "method"),
        tuple(
            (
                judge,
                score.name,
                format_number(score.raw),
                format_number(score.corrected.estimate),
                f"{score.corrected.low:.2f} to {score.corrected.high:.2f}",
                str(score.corrected.n),
                score.corrected.method,
            )
            for judge, own in found.items()
            for score in own
        ),
    )


def bias_table(found: Sequence[Calibration]) -> Table:
    """Return each judge's bias by category of task and by kind of deliverable."""
    return Table(
        ("judge", "by", "group", "leaves", "bias", "95 %", "accuracy", "95 %"),
        tuple(
            (
                one.judge,
                group.by,
                group.name,
                str(group.leaves),
                *signed_cells(group.bias),
                *_accuracy_cells(group.accuracy),
            )
            for one in found
            for group in one.groups
        ),
    )


def _accuracy(pairs: Sequence[_Pair], threshold: float) -> Interval:
    """Return the share of leaves that judge and people have on the same side."""
    same = [succeeds(one.judge, threshold) == succeeds(one.people, threshold) for one in pairs]
    tasks = [one.task.task for one in pairs]
    return compute_interval(by_task(zip(tasks, map(float, same), strict=True)))


def _bias(pairs: Sequence[_Pair]) -> Interval:
    """Return judge minus people, in points."""
    return shift(((one.task.task, one.judge, one.people) for one in pairs), top=10)


def _f1(tasks: Sequence[str], sides: Sequence[Sequence[float]]) -> Interval | None:
    """Return twice what both pass, of all that either passes; None if neither passes anything."""
    labeled = list(zip(tasks, sides, strict=True))
    found = Ratio(
        by_task((task, 2 * seen * wanted) for task, (seen, wanted) in labeled).numerators,
        by_task((task, seen + wanted) for task, (seen, wanted) in labeled).numerators,
    )
    return compute_interval(found) if any(found.denominators) else None


def _accuracy_cells(one: Interval) -> tuple[str, str]:
    return f"{one.estimate:.3f}", f"{one.low:.3f} to {one.high:.3f}"


def _interval_cells(*found: Interval | None) -> Iterator[str]:
    """Yield each estimate, and its interval for the next cell."""
    for one in found:
        yield format_number(None if one is None else one.estimate)
        yield "-" if one is None else f"{one.low:.2f} to {one.high:.2f}"


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _groups(pairs: Sequence[_Pair], threshold: float) -> Iterator[Bias]:
    groups: dict[tuple[str, str], list[_Pair]] = {}
    for pair in pairs:
        groups.setdefault(("category", pair.task.category or NO_CATEGORY), []).append(pair)
        for kind in pair.task.kinds:
            groups.setdefault(("delivered", kind), []).append(pair)
    for (by, name), own in sorted(groups.items()):
        accuracy = _accuracy(own, threshold)
        yield Bias(by=by, name=name, leaves=len(own), bias=_bias(own), accuracy=accuracy)


def leaf_parts(judge: JudgeScores, people: People, threshold: float) -> list[JudgedPart]:
    """Return whether judge and people pass each leaf."""
    found = []
    for task in judge.tasks:
        for leaf in task.leaves:
            if leaf.value is not None:
                label = people.settled.get((task.task, task.epoch, leaf.leaf))
                found.append(_part(task, leaf.value, label, people))
    return [_to_pass(part, threshold) for part in found]


def collect_judged_parts(
    judge: JudgeScores, people: People, units: Sequence[WorkflowUnit], scores: WorkflowScores
) -> dict[str, list[JudgedPart]]:
    """Return what judge and people say: by leaf for Leaf SR, by task for the other metrics."""
    whole = {(unit.task.id, unit.epoch): unit for unit in units}
    roots = [
        _part(task, task.root, _people_root(whole[task.task, task.epoch], people.settled), people)
        for task in judge.tasks
        if task.root is not None
    ]
    return {
        ROOT_SR.name: [_to_pass(part, scores.root_threshold) for part in roots],
        LEAF_SR.name: leaf_parts(judge, people, scores.leaf_threshold),
        ROOT_SCORE.name: roots,
    }


def _part(task: TaskScore, judged: float, label: float | None, people: People) -> JudgedPart:
    """Return the part of one leaf or root.

    It is sure if nothing was delivered, which fails by rule and says nothing about the judge. Its
    chance of being labeled is that of the unit's leaves.
    """
    sure = NOT_DELIVERED in task.kinds
    leaves = ((task.task, task.epoch, leaf.leaf) for leaf in task.leaves)
    chance = min((people.chances.get(leaf, 1.0) for leaf in leaves), default=1.0)
    return JudgedPart(task.task, judged, judged if sure else label, chance=chance, sure=sure)


def correct_scores(parts: Mapping[str, Sequence[JudgedPart]]) -> Iterator[CorrectedScore]:
    """Correct every metric that has labels."""
    for name, own in parts.items():
        row = JUDGED[name]
        if any(part.by_people for part in own):
            corrected = estimate_rate(own, top=row.top)
            yield CorrectedScore(
                name=row.heading,
                raw=_raw(own, row.factor),
                corrected=corrected.scaled(row.factor),
            )


def correct_differences(
    first: Mapping[str, Sequence[JudgedPart]],
    second: Mapping[str, Sequence[JudgedPart]],
) -> Iterator[CorrectedScore]:
    """Return first system minus second on their common tasks, each corrected by its own labels."""
    for name, one in first.items():
        row, two = JUDGED[name], second[name]
        common = {part.task for part in one} & {part.task for part in two}
        sides = [[part for part in own if part.task in common] for own in (one, two)]
        if all(any(part.by_people for part in own) for own in sides):
            corrected = estimate_difference(*sides, top=row.top)
            yield CorrectedScore(
                name=row.heading,
                raw=_raw(sides[0], row.factor) - _raw(sides[1], row.factor),
                corrected=corrected.scaled(row.factor),
            )


def _raw(parts: Sequence[JudgedPart], factor: float) -> float:
    return factor * sum(part.judged for part in parts) / sum(part.whole for part in parts)


def _to_pass(part: JudgedPart, threshold: float) -> JudgedPart:
    """Replace scores by 1 for passed and 0 for failed."""
    label = part.labeled
    return part._replace(
        judged=float(succeeds(part.judged, threshold)),
        labeled=None if label is None else float(succeeds(label, threshold)),
    )


def _people_root(unit: WorkflowUnit, settled: Mapping[LeafKey, float]) -> float | None:
    """Return the root score from people's labels; None if a leaf has no label."""
    keys = {leaf.id: (unit.task.id, unit.epoch, leaf.id) for leaf in unit.task.leaves()}
    known = {leaf: settled[key] for leaf, key in keys.items() if key in settled}
    return root_score(unit.task.checkpoints, known)
