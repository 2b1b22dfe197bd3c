"""Two judges on the same leaves: how far scores move, and whether both can share a table."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from gta_bench.metrics.panel import LeafKey, group_by_leaf, list_scores
from gta_bench.metrics.strict.workflow import BEST, root_score
from gta_bench.metrics.table import LEAF_SR, ROOT_SCORE
from gta_bench.records.judges import Drift, Sharing
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.reports.tables import Table
from gta_bench.statistics.agreement import compute_ac1, compute_kappa, mark_passed
from gta_bench.statistics.pooled import Ratio, compute_difference, compute_interval

# How far Root Score (0 to 10) may move between judges that share a table; Leaf SR (0 to 100) may
# move ten times as far.
MARGIN = 0.5


class LeafPair(NamedTuple):
    """A leaf with the mean score of either judge."""

    key: LeafKey
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
    """Pair the scores of two judges leaf by leaf; leaves with different evidence are left out."""
    before, after = _scored_leaves(old, old_judge), _scored_leaves(new, new_judge)
    found: list[LeafPair] = []
    prompts: set[str] = set()
    for key in before.keys() & after.keys():
        one, two = before[key], after[key]
        if one[0].evidence == two[0].evidence:
            found.append(LeafPair(key, fmean(list_scores(one)), fmean(list_scores(two))))
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
    """Measure how far the new judge's scores differ, and whether both can share a table."""
    leaves = pairs.leaves
    tasks = [one.key[0] for one in leaves]
    sides = [mark_passed((one.old, one.new), threshold) for one in leaves]
    paired = list(zip(tasks, sides, strict=True))
    rates = shift(((task, 100 * new, 100 * old) for task, (old, new) in paired), top=100.0)
    roots = root_shift(((one.key, 1, one.new, one.old) for one in leaves), units)
    return Drift(
        old=names[0],
        new=names[1],
        leaves=len(leaves),
        tasks=len(set(tasks)),
        left_out=pairs.left_out,
        leaf_score=shift(((one.key[0], one.new, one.old) for one in leaves), top=BEST),
        leaf_sr=rates,
        root_score=roots,
        kappa=compute_kappa([(one.old, one.new) for one in leaves], tasks),
        ac1=compute_ac1(sides, tasks),
        flips=compute_interval(by_task((task, float(old != new)) for task, (old, new) in paired)),
        same_prompts=pairs.same_prompts,
        margin=margin,
        sharing=_can_share([(rates, 10 * margin)] + ([(roots, margin)] if roots else [])),
    )


def drift_table(found: Drift) -> Table:
    """Return the differences of scores with their intervals."""
    rows = [
        ("leaf score", found.leaf_score),
        (LEAF_SR.heading, found.leaf_sr),
        *([] if found.root_score is None else [(ROOT_SCORE.heading, found.root_score)]),
    ]
    return Table(
        ("score", "new minus old", "95 %"), tuple((name, *signed_cells(one)) for name, one in rows)
    )


def signed_cells(one: Interval) -> tuple[str, str]:
    """Return a difference and its interval as two cells of a table."""
    return f"{one.estimate:+.2f}", f"{one.low:+.2f} to {one.high:+.2f}"


def by_task(values: Iterable[tuple[str, float]]) -> Ratio:
    """Sum values by task, because the values of one task are not independent."""
    sums: dict[str, list[float]] = {}
    for task, value in values:
        sums.setdefault(task, []).append(value)
    return Ratio([sum(own) for own in sums.values()], [float(len(own)) for own in sums.values()])


def shift(values: Iterable[tuple[str, float, float]], *, top: float) -> Interval:
    """Return the mean of the first values minus that of the second; each has its task first."""
    found = list(values)
    first = by_task((task, one) for task, one, _ in found)
    second = by_task((task, two) for task, _, two in found)
    return compute_difference(first, second, top=top).interval


def root_shift(
    scores: Iterable[tuple[LeafKey, int, float, float]], units: Iterable[WorkflowUnit]
) -> Interval | None:
    """Return the difference in Root Score over the units whose leaves all have both scores.

    `scores` has a leaf, a repeat and the two scores to compare. None if there is no such unit.
    """
    sides: dict[tuple[str, int], dict[int, tuple[dict[str, float], dict[str, float]]]] = {}
    for (task, epoch, leaf), repeat, one, two in scores:
        first, second = sides.setdefault((task, epoch), {}).setdefault(repeat, ({}, {}))
        first[leaf], second[leaf] = one, two
    roots = []
    for unit in units:
        for first, second in sides.get((unit.task.id, unit.epoch), {}).values():
            new, old = (root_score(unit.task.checkpoints, side) for side in (first, second))
            if new is not None and old is not None:
                roots.append((unit.task.id, new, old))
    return shift(roots, top=BEST) if roots else None


def _scored_leaves(rows: Iterable[VerdictRow], judge: str) -> dict[LeafKey, list[VerdictRow]]:
    """Return the rows of the leaves that the judge scored in every repeat."""
    _, leaves = group_by_leaf(row for row in rows if row.key.judge == judge)
    return {
        key: own[judge]
        for key, own in leaves.items()
        if len(list_scores(own[judge])) == len(own[judge])
    }


def _can_share(found: Sequence[tuple[Interval, float]]) -> Sharing:
    """Return yes if all intervals are within their margins, no if one excludes 0."""
    if all(-margin <= one.low and one.high <= margin for one, margin in found):
        return "yes"
    moved = any(one.low > 0 or one.high < 0 for one, _ in found)
    return "no" if moved else "unknown"
