"""Several judges on the same leaves: their agreement, their cost, and unstable leaves."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import combinations
from math import nan
from statistics import fmean, stdev
from typing import NamedTuple

from gta_bench.errors import format_count
from gta_bench.metrics.panel import LeafKey, LeafTable
from gta_bench.metrics.strict.workflow import succeeds
from gta_bench.records.agreement import Agreement, JudgeAgreement, LeafSpread, PanelReport
from gta_bench.reports.tables import Table, dollars, format_number, with_interval

HEADING = (
    *("judge", "verdicts", "leaves", "spread", "flips %"),
    *("alpha", "alpha pass", "AC1 pass", "ICC", "kappa", "cost"),
)
TEXT_COLUMNS = (0,)
UNSTABLE_TEXT_COLUMNS = (0, 1, 3)
UNSTABLE_SHOWN = 20
# A run of a million leaves may have very many.
UNSTABLE_LISTED = 1000


class _Flipping(NamedTuple):
    """A leaf with scores on both sides of the threshold; those with the largest spread first."""

    order: float
    key: LeafKey
    place: int
    scores: tuple[list[float], ...]


def panel_report(leaves: LeafTable, *, threshold: float) -> PanelReport:
    """Compare the repeats of every judge, every pair of judges by their means, and all judges.

    Needs scipy.
    """
    judges = leaves.judges
    found = [_compare_repeats(judge, leaves, threshold) for judge in judges]
    found += [
        _compare_judges(f"{one} and {two}", (one, two), leaves, threshold)
        for one, two in combinations(judges, 2)
    ]
    if len(judges) > 2:
        found.append(_compare_judges(f"all {len(judges)} judges", judges, leaves, threshold))
    given = zip(*(leaves.columns[judge] for judge in judges), strict=True)
    flipping = 0

    def spreads() -> Iterator[_Flipping]:
        nonlocal flipping
        for place, (key, own) in enumerate(zip(leaves.places(), given, strict=True)):
            if _flips(own, threshold):
                flipping += 1
                spread = stdev(score for scores in own for score in scores)
                yield _Flipping(-spread, key, place, own)

    worst = nsmallest(UNSTABLE_LISTED, spreads())
    return PanelReport(
        threshold=threshold,
        rows=tuple(found),
        unstable=tuple(_describe(one, leaves) for one in worst),
        unstable_leaves=flipping,
        leaves=len(leaves),
    )


def panel_table(panel: PanelReport) -> Table:
    """Return a row for each judge, each pair, and all judges."""
    return Table(HEADING, tuple(_row(row) for row in panel.rows))


def unstable_table(panel: PanelReport) -> Table:
    """Return the leaves with the largest spread whose scores are on both sides of the threshold."""
    return Table(
        ("task", "leaf", "spread", "scores"),
        tuple(
            (
                leaf.task if leaf.epoch == 1 else f"{leaf.task}, epoch {leaf.epoch}",
                leaf.leaf,
                f"{leaf.spread:.2f}",
                "; ".join(
                    f"{judge}: {' '.join(f'{score:g}' for score in given)}"
                    for judge, given in leaf.scores
                ),
            )
            for leaf in panel.unstable[:UNSTABLE_SHOWN]
        ),
    )


def has_repeated_scores(panel: PanelReport) -> bool:
    """Return whether any leaf has two scores."""
    return any(row.agreement.leaves for row in panel.rows)


def unstable_title(panel: PanelReport) -> str:
    """Return the title of the table: how many leaves are unstable, and how many are shown."""
    count = panel.unstable_leaves
    part = f", the worst {UNSTABLE_SHOWN}" if count > UNSTABLE_SHOWN else ""
    return (
        f"{count} of {format_count(panel.leaves, 'leaf', 'leaves')} with scores on both sides of "
        f"{panel.threshold:g}{part}"
    )


def _compare_repeats(judge: str, leaves: LeafTable, threshold: float) -> JudgeAgreement:
    # Imports scipy, which the core does not install; the tables of a report do not need it.
    from gta_bench.statistics.agreement import measure_agreement, pad_ratings

    column = leaves.columns[judge]
    repeats = max(column.given)
    # Single scores agree with nothing.
    found = Agreement(raters=repeats, leaves=0)
    if repeats > 1:
        table = pad_ratings(column.counts, column.values, raters=repeats)
        found = measure_agreement(table, leaves.tasks, threshold=threshold)
    return JudgeAgreement(
        name=judge,
        agreement=found,
        verdicts=sum(column.given),
        cost_usd=column.cost.sum().total,
    )


def _compare_judges(
    name: str, judges: Sequence[str], leaves: LeafTable, threshold: float
) -> JudgeAgreement:
    from gta_bench.statistics.agreement import measure_agreement, stack_ratings

    table = stack_ratings([array("d", map(_mean, leaves.columns[judge])) for judge in judges])
    found = measure_agreement(table, leaves.tasks, threshold=threshold)
    return JudgeAgreement(name=name, agreement=found)


def _mean(scores: Sequence[float]) -> float:
    return fmean(scores) if scores else nan


def _flips(given: Iterable[Sequence[float]], threshold: float) -> bool:
    return len({succeeds(score, threshold) for scores in given for score in scores}) > 1


def _describe(flipping: _Flipping, leaves: LeafTable) -> LeafSpread:
    task, epoch, leaf = flipping.key
    scores = tuple(
        (judge, tuple(given))
        for judge, given in zip(leaves.judges, flipping.scores, strict=True)
        if leaves.columns[judge].given[flipping.place]
    )
    every = [score for _, given in scores for score in given]
    return LeafSpread(
        task=task,
        epoch=epoch,
        leaf=leaf,
        scores=scores,
        low=min(every),
        high=max(every),
        spread=-flipping.order,
    )


def _row(row: JudgeAgreement) -> tuple[str, ...]:
    found = row.agreement
    return (
        row.name,
        "-" if row.verdicts is None else str(row.verdicts),
        str(found.leaves),
        format_number(found.spread),
        with_interval(found.flip_rate, factor=100),
        *map(with_interval, (found.alpha, found.pass_alpha, found.ac1, found.icc, found.kappa)),
        dollars(row.cost_usd),
    )
