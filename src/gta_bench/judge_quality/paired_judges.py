"""Two judges on the same leaves: what a replacement moves, and whether both may share a table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from gta_bench.metrics.panel import LeafPlace, by_leaf, scores_of
from gta_bench.metrics.strict.workflow import root_score, succeeds
from gta_bench.metrics.table import LEAF_SR, ROOT_SCORE
from gta_bench.records.judges import Drift, Sharing
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.reports.tables import Table
from gta_bench.statistics.agreement import ac1_of, kappa_of, passed
from gta_bench.statistics.pooled import Ratio, difference_of, interval_of

# By how much Root Score (0 to 10) may move between judges whose runs share a table; Leaf SR by as
# many tenths of 100.
MARGIN = 0.5

_Value = Callable[["LeafPair"], float]


class LeafPair(NamedTuple):
    """A leaf with the mean score of either judge."""

    place: LeafPlace
    old: float
    new: float


class Pairs(NamedTuple):
    """The leaves that both judges scored on the same evidence."""

    leaves: tuple[LeafPair, ...]
    left_out: int
    same_prompts: bool


def pair_judges(
    old: Iterable[VerdictRow], old_judge: str, new: Iterable[VerdictRow], new_judge: str
) -> Pairs:
    """Leaf by leaf; a leaf with other evidence is another leaf."""
    before, after = _scored(old, old_judge), _scored(new, new_judge)
    found: list[LeafPair] = []
    prompts: set[str] = set()
    for place in before.keys() & after.keys():
        one, two = before[place], after[place]
        if one[0].evidence == two[0].evidence:
            found.append(LeafPair(place, fmean(scores_of(one)), fmean(scores_of(two))))
            prompts |= {row.prompts for row in (*one, *two)}
    found.sort()
    left_out = len(before.keys() | after.keys()) - len(found)
    return Pairs(tuple(found), left_out, len(prompts) < 2)


def drift(
    pairs: Pairs,
    units: Sequence[WorkflowUnit],
    *,
    names: tuple[str, str],
    threshold: float,
    margin: float = MARGIN,
) -> Drift:
    """By how much the new judge's scores differ, and whether old and new may share a table."""
    leaves = pairs.leaves
    rates = _shift(leaves, _passing(threshold, _new), _passing(threshold, _old), top=100.0)
    roots = _root_shift(leaves, units)
    tasks = [one.place[0] for one in leaves]
    sides = [passed((one.old, one.new), threshold) for one in leaves]
    flips = by_task(
        (task, float(one != two)) for task, (one, two) in zip(tasks, sides, strict=True)
    )
    return Drift(
        old=names[0],
        new=names[1],
        leaves=len(leaves),
        tasks=len(set(tasks)),
        left_out=pairs.left_out,
        leaf_score=_shift(leaves, _new, _old, top=10.0),
        leaf_sr=rates,
        root_score=roots,
        kappa=kappa_of([(one.old, one.new) for one in leaves], tasks),
        ac1=ac1_of(sides, tasks),
        flips=interval_of(flips),
        same_prompts=pairs.same_prompts,
        margin=margin,
        sharing=_sharing([(rates, 10 * margin)] + ([(roots, margin)] if roots else [])),
    )


def drift_table(found: Drift) -> Table:
    """What moves, with intervals."""
    rows = [
        ("leaf score", found.leaf_score),
        (LEAF_SR.heading, found.leaf_sr),
        *([] if found.root_score is None else [(ROOT_SCORE.heading, found.root_score)]),
    ]
    return Table(
        ("score", "new minus old", "95 %"),
        tuple((name, f"{one.estimate:+.2f}", signed(one)) for name, one in rows),
    )


def signed(one: Interval) -> str:
    """The ends of the interval of a difference."""
    return f"{one.low:+.2f} to {one.high:+.2f}"


def by_task(values: Iterable[tuple[str, float]]) -> Ratio:
    """Values as sums by task: what belongs to a task is no independent thing."""
    sums: dict[str, list[float]] = {}
    for task, value in values:
        sums.setdefault(task, []).append(value)
    return Ratio([sum(own) for own in sums.values()], [float(len(own)) for own in sums.values()])


def _scored(rows: Iterable[VerdictRow], judge: str) -> dict[LeafPlace, list[VerdictRow]]:
    _, leaves = by_leaf(row for row in rows if row.key.judge == judge)
    return {
        place: own[judge]
        for place, own in leaves.items()
        if len(scores_of(own[judge])) == len(own[judge])
    }


def _old(one: LeafPair) -> float:
    return one.old


def _new(one: LeafPair) -> float:
    return one.new


def _passing(threshold: float, value: _Value) -> _Value:
    return lambda one: 100.0 * succeeds(value(one), threshold)


def _pooled(leaves: Sequence[LeafPair], value: _Value) -> Ratio:
    return by_task((one.place[0], value(one)) for one in leaves)


def _shift(leaves: Sequence[LeafPair], new: _Value, old: _Value, *, top: float) -> Interval:
    return difference_of(_pooled(leaves, new), _pooled(leaves, old), top=top).interval


def _root_shift(leaves: Sequence[LeafPair], units: Sequence[WorkflowUnit]) -> Interval | None:
    """Root Score, new minus old, over the units whose leaves are all paired."""
    old, new = (by_task(_roots(leaves, units, value)) for value in (_old, _new))
    return difference_of(new, old, top=10.0).interval if len(old.numerators) else None


def _roots(
    leaves: Sequence[LeafPair], units: Sequence[WorkflowUnit], value: _Value
) -> Iterator[tuple[str, float]]:
    scores: dict[tuple[str, int], dict[str, float]] = {}
    for one in leaves:
        task, epoch, leaf = one.place
        scores.setdefault((task, epoch), {})[leaf] = value(one)
    for unit in units:
        root = root_score(unit.task.checkpoints, scores.get((unit.task.id, unit.epoch), {}))
        if root is not None:
            yield unit.task.id, root


def _sharing(found: Sequence[tuple[Interval, float]]) -> Sharing:
    """Yes where all intervals lie within the margins; no where one lies apart from 0."""
    if all(-margin <= one.low and one.high <= margin for one, margin in found):
        return "yes"
    moved = any(one.low > 0 or one.high < 0 for one, _ in found)
    return "no" if moved else "unknown"
