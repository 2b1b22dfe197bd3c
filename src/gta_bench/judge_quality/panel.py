"""Several judges on the same leaves: their agreement, their cost, and unstable leaves."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, stdev

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
    unstable = [
        _spread(place, key, dict(zip(judges, own, strict=True)), leaves)
        for place, (key, own) in enumerate(zip(leaves.places(), given, strict=True))
        if _flips(own, threshold)
    ]
    unstable.sort(key=lambda leaf: (-leaf.spread, leaf.task, leaf.epoch, leaf.leaf))
    return PanelReport(
        threshold=threshold, rows=tuple(found), unstable=tuple(unstable), leaves=len(leaves)
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
    count = len(panel.unstable)
    part = f", the worst {UNSTABLE_SHOWN}" if count > UNSTABLE_SHOWN else ""
    return (
        f"{count} of {format_count(panel.leaves, 'leaf', 'leaves')} with scores on both sides of "
        f"{panel.threshold:g}{part}"
    )


def _compare_repeats(judge: str, leaves: LeafTable, threshold: float) -> JudgeAgreement:
    column = leaves.columns[judge]
    repeats = max(column.given)
    # Single scores agree with nothing; a table of millions would take gigabytes.
    table = [[*own, *[None] * (repeats - len(own))] for own in column] if repeats > 1 else []
    found = _agreement(table, leaves.tasks if table else [], threshold)
    return JudgeAgreement(
        name=judge,
        agreement=found.model_copy(update={"raters": repeats}),
        verdicts=sum(column.given),
        cost_usd=column.cost.sum().total,
    )


def _compare_judges(
    name: str, judges: Sequence[str], leaves: LeafTable, threshold: float
) -> JudgeAgreement:
    columns = [map(_mean, leaves.columns[judge]) for judge in judges]
    table = [list(row) for row in zip(*columns, strict=True)]
    return JudgeAgreement(name=name, agreement=_agreement(table, leaves.tasks, threshold))


def _agreement(
    table: Sequence[Sequence[float | None]], tasks: Sequence[str], threshold: float
) -> Agreement:
    # Imports scipy, which the core does not install; the tables of a report do not need it.
    from gta_bench.statistics.agreement import measure_agreement

    return measure_agreement(table, tasks, threshold=threshold)


def _mean(scores: Sequence[float]) -> float | None:
    return fmean(scores) if scores else None


def _flips(given: Iterable[Sequence[float]], threshold: float) -> bool:
    return len({succeeds(score, threshold) for scores in given for score in scores}) > 1


def _spread(
    place: int, key: LeafKey, own: Mapping[str, Sequence[float]], leaves: LeafTable
) -> LeafSpread:
    task, epoch, leaf = key
    scores = tuple(
        (judge, tuple(given)) for judge, given in own.items() if leaves.columns[judge].given[place]
    )
    every = [score for _, given in scores for score in given]
    low, high, spread = min(every), max(every), stdev(every)
    return LeafSpread(
        task=task, epoch=epoch, leaf=leaf, scores=scores, low=low, high=high, spread=spread
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
