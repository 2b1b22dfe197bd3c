"""A judge set against people on the leaves that they labelled."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gta_bench.metrics.counts import JudgedCounts
from gta_bench.metrics.labels import Place
from gta_bench.metrics.strict.workflow import count_judged, root_score, succeeds
from gta_bench.metrics.table import LEAF_SR, ROOT_SCORE, ROOT_SR
from gta_bench.metrics.workflow_scores import NO_CATEGORY
from gta_bench.records.calibration import Bias, Calibration, CorrectedScore
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow_scores import (
    JudgeScores,
    LeafScore,
    TaskScore,
    WorkflowScores,
)
from gta_bench.reports.tables import Table, shown
from gta_bench.statistics.agreement import ac1_of, kappa_of, passed
from gta_bench.statistics.pooled import Ratio, difference_of, interval_of
from gta_bench.statistics.prediction import JudgedPart, corrected_rate


class _Pair(NamedTuple):
    task: TaskScore
    judge: float
    people: float


def calibrate(
    judge: JudgeScores,
    settled: Mapping[Place, float],
    units: Sequence[WorkflowUnit],
    scores: WorkflowScores,
) -> Calibration | None:
    """What the labels say of the judge; None where it scored none of the labelled leaves."""
    pairs = list(_pairs(judge, settled))
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
        scores=tuple(_corrected(judge, settled, units, scores)),
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


def corrected_table(found: Sequence[Calibration]) -> Table:
    """Each score as the judge gives it, and corrected by the labelled tasks."""
    return Table(
        ("judge", "score", "raw", "corrected", "95 %", "labelled tasks", "method"),
        tuple(
            (
                one.judge,
                score.name,
                shown(score.raw),
                shown(score.corrected.estimate),
                f"{score.corrected.low:.2f} to {score.corrected.high:.2f}",
                str(score.corrected.n),
                score.corrected.method,
            )
            for one in found
            for score in one.scores
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


def _pairs(judge: JudgeScores, settled: Mapping[Place, float]) -> Iterator[_Pair]:
    for task in judge.tasks:
        for leaf in task.leaves:
            people = settled.get((task.task, task.epoch, leaf.leaf))
            if people is not None and leaf.value is not None:
                yield _Pair(task, leaf.value, people)


def _ratio(pairs: Sequence[_Pair], values: Sequence[float]) -> Ratio:
    """Sums by task: the leaves of a task are no independent things."""
    tasks: dict[str, list[float]] = {}
    for pair, value in zip(pairs, values, strict=True):
        tasks.setdefault(pair.task.task, []).append(value)
    return Ratio([sum(own) for own in tasks.values()], [float(len(own)) for own in tasks.values()])


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
    return f"{one.estimate:+.2f}", f"{one.low:+.2f} to {one.high:+.2f}"


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


def _corrected(
    judge: JudgeScores,
    settled: Mapping[Place, float],
    units: Sequence[WorkflowUnit],
    scores: WorkflowScores,
) -> Iterator[CorrectedScore]:
    """A judge's metrics; a unit is labelled where all its leaves are."""
    whole = {(unit.task.id, unit.epoch): unit for unit in units}

    def counted(task: TaskScore) -> JudgedCounts:
        return count_judged(
            [task], leaf_threshold=scores.leaf_threshold, root_threshold=scores.root_threshold
        )

    pairs = []
    for task in judge.tasks:
        if task.root is not None:
            labelled = _labelled(task, whole[task.task, task.epoch], settled)
            people = None if labelled is None else counted(labelled)
            pairs.append((task.task, counted(task), people))
    for row in (ROOT_SR, LEAF_SR, ROOT_SCORE):
        parts = [
            JudgedPart(
                name,
                row.factor * row.numerator(judged),
                None if people is None else row.factor * row.numerator(people),
                row.part(judged)[1],
            )
            for name, judged, people in pairs
        ]
        if any(part.labelled is not None for part in parts):
            raw = sum(part.judged for part in parts) / sum(part.whole for part in parts)
            corrected = corrected_rate(parts, top=row.factor * row.top)
            yield CorrectedScore(name=row.heading, raw=raw, corrected=corrected)


def _labelled(
    task: TaskScore, unit: WorkflowUnit, settled: Mapping[Place, float]
) -> TaskScore | None:
    """The unit as people scored it, or None where they did not label one of its leaves."""
    people = _people(unit, settled)
    if people is None:
        return None
    leaves = tuple(LeafScore(leaf=leaf, value=value) for leaf, value in people.items())
    root = root_score(unit.task.checkpoints, people)
    return task.model_copy(update={"root": root, "leaves": leaves})


def _people(unit: WorkflowUnit, settled: Mapping[Place, float]) -> dict[str, float] | None:
    """People's scores of all leaves of a unit, or None where one is missing."""
    places = [(unit.task.id, unit.epoch, leaf.id) for leaf in unit.task.leaves()]
    if any(place not in settled for place in places):
        return None
    return {place[2]: settled[place] for place in places}
