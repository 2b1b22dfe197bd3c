"""Which tasks and leaves two runs do not have in common: what got worse, and what better."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gta_bench.metrics import table
from gta_bench.metrics.comparability import common_judges
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.comparison import ComparedRun, Flip
from gta_bench.records.scores import RunScores
from gta_bench.records.workflow_scores import JudgeScores, WorkflowScores
from gta_bench.reports.gains import GAINED

_Place = tuple[str, str | None]
Values = Mapping[_Place, float]
ROUNDING: Final = 1e-9


def find_flips(first: ComparedRun, second: ComparedRun) -> tuple[Flip, ...]:
    """Every task and leaf that flipped, the worst first.

    A task of GTA-Atomic flips where its score differs, a task or leaf of GTA-Workflow where it
    succeeds in one run only. Several epochs count by their mean.
    """
    one, two = first.scores, second.scores
    if isinstance(one, WorkflowScores) and isinstance(two, WorkflowScores):
        found = _judged(one, two, common_judges(first, second))
    else:
        assert isinstance(one, RunScores) and isinstance(two, RunScores)
        found = _counted(one, two)
    return tuple(sorted(found, key=_place))


def _place(flip: Flip) -> tuple[float, int, str]:
    """The largest loss first; changes of the same size by task."""
    return round(flip.second - flip.first, 6), len(flip.task), flip.task


def _counted(one: RunScores, two: RunScores) -> Iterator[Flip]:
    for name in GAINED[one.mode]:
        sides = [_shares(scores, name) for scores in (one, two)]
        for task, left in sides[0].items():
            right = sides[1].get(task)
            if right is not None and abs(left - right) > ROUNDING:
                yield Flip(task=task, metric=table.label(name), first=left, second=right)


def _shares(scores: RunScores, name: str) -> dict[str, float]:
    """The metric of each task that it can be measured in, over all epochs."""
    row = table.metric(name)
    sums: dict[str, list[float]] = {}
    for unit in scores.units:
        own = sums.setdefault(unit.task, [0.0, 0.0])
        for place, part in enumerate(row.part(unit.strict)):
            own[place] += part
    return {task: row.factor * hits / whole for task, (hits, whole) in sums.items() if whole}


def _judged(one: WorkflowScores, two: WorkflowScores, judges: Sequence[str]) -> Iterator[Flip]:
    for judge in judges:
        tables = [own for scores in (one, two) if (own := scores.table(judge)) is not None]
        roots = [_means(_roots(own)) for own in tables]
        leaves = [_means(_leaves(own)) for own in tables]
        for sides, threshold, metric in (
            (roots, one.root_threshold, table.ROOT_SCORE.label),
            (leaves, one.leaf_threshold, "leaf score"),
        ):
            for place, left in sides[0].items():
                right = sides[1].get(place)
                if right is None or succeeds(left, threshold) == succeeds(right, threshold):
                    continue
                task, leaf = place
                yield Flip(
                    task=task, leaf=leaf, judge=judge, metric=metric, first=left, second=right
                )


def _roots(scores: JudgeScores) -> Iterator[tuple[_Place, float]]:
    for task in scores.tasks:
        if task.root is not None:
            yield (task.task, None), task.root


def _leaves(scores: JudgeScores) -> Iterator[tuple[_Place, float]]:
    for task in scores.tasks:
        for leaf in task.leaves:
            if leaf.value is not None:
                yield (task.task, leaf.leaf), leaf.value


def _means(found: Iterable[tuple[_Place, float]]) -> Values:
    values: dict[_Place, list[float]] = {}
    for place, value in found:
        values.setdefault(place, []).append(value)
    return {place: sum(own) / len(own) for place, own in values.items()}
