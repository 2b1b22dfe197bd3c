"""A judge set against people on the leaves that they labelled."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gta_bench.judge_quality.paired_judges import by_task, signed
from gta_bench.metrics.labels import People
from gta_bench.metrics.panel import LeafPlace
from gta_bench.metrics.strict.workflow import root_score, succeeds
from gta_bench.metrics.table import JUDGED, LEAF_SR, ROOT_SCORE, ROOT_SR
from gta_bench.metrics.workflow_scores import NO_CATEGORY, NOT_DELIVERED
from gta_bench.records.calibration import Bias, Calibration, CorrectedScore
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import (
    JudgeScores,
    TaskScore,
    WorkflowScores,
)
from gta_bench.reports.tables import Table, shown
from gta_bench.statistics.agreement import ac1_of, kappa_of, passed
from gta_bench.statistics.pooled import Ratio, difference_of, interval_of
from gta_bench.statistics.prediction import JudgedPart, corrected_difference, corrected_rate


class _Pair(NamedTuple):
    task: TaskScore
    judge: float
    people: float


def calibrate(
    judge: JudgeScores,
    people: People,
    units: Sequence[WorkflowUnit],
    scores: WorkflowScores,
) -> Calibration | None:
    """What the labels say of the judge; None where it scored none of the labelled leaves."""
    pairs = list(_pairs(judge, people.settled))
    if not pairs:
        return None
    threshold = scores.leaf_threshold
    tasks = [one.task.task for one in pairs]
    sides = [passed((one.judge, one.people), threshold) for one in pairs]
    both = sum(seen * wanted for seen, wanted in sides)
    return Calibration(
        judge=judge.judge,
        leaves=len(pairs),
        tasks=len(set(tasks)),
        accuracy=_accuracy(pairs, threshold),
        kappa=kappa_of(sides, tasks, top=1),
        ac1=ac1_of(sides, tasks),
        score_kappa=kappa_of([(one.judge, one.people) for one in pairs], tasks),
        precision=_share(both, sum(seen for seen, _ in sides)),
        recall=_share(both, sum(wanted for _, wanted in sides)),
        f1=_f1(pairs, sides),
        bias=_bias(pairs),
        groups=tuple(_groups(pairs, threshold)),
        scores=tuple(corrected_scores(judged_parts(judge, people, units, scores))),
    )


def figure_table(found: Sequence[Calibration]) -> Table:
    """A row for each judge: how well it agrees with people."""
    return Table(
        (
            "judge",
            "leaves",
            "tasks",
            "accuracy",
            "95 %",
            *("kappa", "95 %", "AC1", "95 %", "F1", "95 %", "score kappa", "95 %"),
            *("bias", "95 %"),
        ),
        tuple(
            (
                one.judge,
                str(one.leaves),
                str(one.tasks),
                f"{one.accuracy.estimate:.3f}",
                f"{one.accuracy.low:.3f} to {one.accuracy.high:.3f}",
                *_spans(one.kappa, one.ac1, one.f1, one.score_kappa),
                *_signed(one.bias),
            )
            for one in found
        ),
    )


def corrected_table(found: Mapping[str, Sequence[CorrectedScore]]) -> Table:
    """For each judge, a score as it gives it, and corrected by the labelled tasks."""
    return Table(
        ("judge", "score", "raw", "corrected", "95 %", "labelled tasks", "method"),
        tuple(
            (
                judge,
                score.name,
                shown(score.raw),
                shown(score.corrected.estimate),
                f"{score.corrected.low:.2f} to {score.corrected.high:.2f}",
                str(score.corrected.n),
                score.corrected.method,
            )
            for judge, own in found.items()
            for score in own
        ),
    )


def bias_table(found: Sequence[Calibration]) -> Table:
    """Where a judge leans: by category of the task and by kind of deliverable."""
    return Table(
        ("judge", "by", "group", "leaves", "bias", "95 %", "accuracy", "95 %"),
        tuple(
            (
                one.judge,
                group.by,
                group.name,
                str(group.leaves),
                *_signed(group.bias),
                f"{group.accuracy.estimate:.3f}",
                f"{group.accuracy.low:.3f} to {group.accuracy.high:.3f}",
            )
            for one in found
            for group in one.groups
        ),
    )


def _pairs(judge: JudgeScores, settled: Mapping[LeafPlace, float]) -> Iterator[_Pair]:
    for task in judge.tasks:
        for leaf in task.leaves:
            people = settled.get((task.task, task.epoch, leaf.leaf))
            if people is not None and leaf.value is not None:
                yield _Pair(task, leaf.value, people)


def _ratio(pairs: Sequence[_Pair], values: Sequence[float]) -> Ratio:
    """Sums by task."""
    return by_task(zip((pair.task.task for pair in pairs), values, strict=True))


def _accuracy(pairs: Sequence[_Pair], threshold: float) -> Interval:
    """The share of leaves that judge and people have on the same side."""
    right = [succeeds(one.judge, threshold) == succeeds(one.people, threshold) for one in pairs]
    return interval_of(_ratio(pairs, list(map(float, right))))


def _bias(pairs: Sequence[_Pair]) -> Interval:
    """Judge minus people, in points."""
    judge, people = [one.judge for one in pairs], [one.people for one in pairs]
    return difference_of(_ratio(pairs, judge), _ratio(pairs, people), top=10).interval


def _f1(pairs: Sequence[_Pair], sides: Sequence[Sequence[float]]) -> Interval | None:
    """Twice what both pass, of all that either passes; None where neither passes anything."""
    found = Ratio(
        _ratio(pairs, [2 * seen * wanted for seen, wanted in sides]).numerators,
        _ratio(pairs, [seen + wanted for seen, wanted in sides]).numerators,
    )
    return interval_of(found) if any(found.denominators) else None


def _spans(*found: Interval | None) -> Iterator[str]:
    """Estimates, each with its interval in the next cell."""
    for one in found:
        yield shown(None if one is None else one.estimate)
        yield "-" if one is None else f"{one.low:.2f} to {one.high:.2f}"


def _signed(one: Interval) -> tuple[str, str]:
    return f"{one.estimate:+.2f}", signed(one)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _groups(pairs: Sequence[_Pair], threshold: float) -> Iterator[Bias]:
    groups: dict[tuple[str, str], list[_Pair]] = {}
    for pair in pairs:
        groups.setdefault(("category", pair.task.category or NO_CATEGORY), []).append(pair)
        for kind in pair.task.kinds:
            groups.setdefault(("delivered", kind), []).append(pair)
    for (by, name), own in sorted(groups.items()):
        yield Bias(
            by=by,
            name=name,
            leaves=len(own),
            bias=_bias(own),
            accuracy=_accuracy(own, threshold),
        )


def leaf_parts(judge: JudgeScores, people: People, threshold: float) -> list[JudgedPart]:
    """Whether judge and people pass each leaf."""
    found = []
    for task in judge.tasks:
        for leaf in task.leaves:
            if leaf.value is not None:
                label = people.settled.get((task.task, task.epoch, leaf.leaf))
                found.append(_part(task, leaf.value, label, people))
    return [_passed(part, threshold) for part in found]


def judged_parts(
    judge: JudgeScores, people: People, units: Sequence[WorkflowUnit], scores: WorkflowScores
) -> dict[str, list[JudgedPart]]:
    """What judge and people say, for Leaf SR leaf by leaf, for the rest of tasks as a whole."""
    whole = {(unit.task.id, unit.epoch): unit for unit in units}
    roots = [
        _part(task, task.root, _people_root(whole[task.task, task.epoch], people.settled), people)
        for task in judge.tasks
        if task.root is not None
    ]
    return {
        ROOT_SR.name: [_passed(part, scores.root_threshold) for part in roots],
        LEAF_SR.name: leaf_parts(judge, people, scores.leaf_threshold),
        ROOT_SCORE.name: roots,
    }


def _part(task: TaskScore, judged: float, label: float | None, people: People) -> JudgedPart:
    """What was not delivered fails by rule: nobody is asked, and it says nothing of the judge."""
    sure = NOT_DELIVERED in task.kinds
    chance = _chance(task, people)
    return JudgedPart(task.task, judged, judged if sure else label, chance=chance, sure=sure)


def _chance(task: TaskScore, people: People) -> float:
    """That of a unit is that of its leaves."""
    places = ((task.task, task.epoch, leaf.leaf) for leaf in task.leaves)
    return min((people.chances.get(place, 1.0) for place in places), default=1.0)


def corrected_scores(
    parts: Mapping[str, Sequence[JudgedPart]],
) -> Iterator[CorrectedScore]:
    """The metrics for which something is labelled."""
    for name, own in parts.items():
        row = JUDGED[name]
        if any(part.by_people for part in own):
            corrected = corrected_rate(own, top=row.top)
            yield CorrectedScore(
                name=row.heading,
                raw=_raw(own, row.factor),
                corrected=corrected.scaled(row.factor),
            )


def corrected_differences(
    first: Mapping[str, Sequence[JudgedPart]],
    second: Mapping[str, Sequence[JudgedPart]],
) -> Iterator[CorrectedScore]:
    """First system minus second on the tasks that both have, each corrected by its own labels."""
    for name, one in first.items():
        row, two = JUDGED[name], second[name]
        common = {part.task for part in one} & {part.task for part in two}
        sides = [[part for part in own if part.task in common] for own in (one, two)]
        if all(any(part.by_people for part in own) for own in sides):
            corrected = corrected_difference(*sides, top=row.top)
            yield CorrectedScore(
                name=row.heading,
                raw=_raw(sides[0], row.factor) - _raw(sides[1], row.factor),
                corrected=corrected.scaled(row.factor),
            )


def _raw(parts: Sequence[JudgedPart], factor: float) -> float:
    return factor * sum(part.judged for part in parts) / sum(part.whole for part in parts)


def _passed(part: JudgedPart, threshold: float) -> JudgedPart:
    label = part.labeled
    return part._replace(
        judged=float(succeeds(part.judged, threshold)),
        labeled=None if label is None else float(succeeds(label, threshold)),
    )


def _people_root(unit: WorkflowUnit, settled: Mapping[LeafPlace, float]) -> float | None:
    """The root as people scored the leaves; None where one of them has no label."""
    places = {leaf.id: (unit.task.id, unit.epoch, leaf.id) for leaf in unit.task.leaves()}
    known = {leaf: settled[place] for leaf, place in places.items() if place in settled}
    return root_score(unit.task.checkpoints, known)
