"""Simulate a cascade of a cheap and a strong judge: what it saves, and how often it errs.

Each repeat of the judges counts as a run of its own, because a live cascade decides by one score of
the cheap judge whether to ask the strong one, not by a mean, which is less noisy. A leaf that the
cheap judge leaves unscored goes to the strong one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gta_bench.errors import format_count
from gta_bench.judge_quality.paired_judges import by_task, root_shift, shift, signed_cells
from gta_bench.metrics.panel import LeafKey, group_by_leaf
from gta_bench.metrics.strict.workflow import BEST, succeeds
from gta_bench.metrics.table import LEAF_SR, ROOT_SCORE
from gta_bench.records.cost import Cost, read_cost, sum_costs
from gta_bench.records.judges import CascadeReport, CascadeRow
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.reports.tables import Table
from gta_bench.statistics.pooled import compute_interval

BANDS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
# The largest share of different outcomes that the chosen band may have, in percent.
LIMIT = 5.0
FOLDS = 10
# Every score is within this band of any threshold: the strong judge is asked about all leaves.
WIDEST = BEST


class Draw(NamedTuple):
    """A score of either judge on a leaf, None if unscored, and what the verdicts cost."""

    leaf: LeafKey
    repeat: int
    cheap: float | None
    strong: float | None
    cheap_cost: Cost
    strong_cost: Cost

    @property
    def task(self) -> str:
        """The task that the leaf belongs to."""
        return self.leaf[0]


class Draws(NamedTuple):
    """The input of a simulation; `left_out` leaves lack one judge or have different evidence."""

    draws: tuple[Draw, ...]
    repeats: int
    left_out: int


def draw_verdicts(rows: Iterable[VerdictRow], cheap: str, strong: str) -> Draws:
    """Pair the verdicts of both judges by repeat; the judge with fewer repeats starts over."""
    _, leaves = group_by_leaf(row for row in rows if row.key.judge in (cheap, strong))
    numbers = [
        sorted({row.key.repeat for own in leaves.values() for row in own.get(judge, ())})
        for judge in (cheap, strong)
    ]
    repeats = max(map(len, numbers)) if all(numbers) else 0
    found: list[Draw] = []
    for leaf, own in sorted(leaves.items()):
        scored = (row for said in own.values() for row in said if _value(row) is not None)
        if len({row.evidence for row in scored}) > 1:
            continue
        first, second = (
            {row.key.repeat: row for row in own.get(judge, ())} for judge in (cheap, strong)
        )
        for repeat in range(repeats):
            one, two = (
                side.get(known[repeat % len(known)])
                for side, known in zip((first, second), numbers, strict=True)
            )
            if one is not None and two is not None:
                costs = read_cost(one), read_cost(two)
                found.append(Draw(leaf, repeat, _value(one), _value(two), *costs))
    return Draws(tuple(found), repeats, len(leaves) - len({draw.leaf for draw in found}))


def simulate_cascade(
    given: Draws,
    units: Sequence[WorkflowUnit],
    *,
    threshold: float,
    bands: Sequence[float] = BANDS,
    limit: float = LIMIT,
) -> CascadeReport:
    """Simulate every band, and choose one with its figures out of fold.

    If no band keeps the share of different outcomes within the limit, the strong judge is asked
    about all leaves.
    """
    tasks = sorted({draw.task for draw in given.draws})
    folds = [tasks[start::FOLDS] for start in range(min(FOLDS, len(tasks)))]

    def row(used: Mapping[str, float], band: float) -> CascadeRow:
        return _row(given, units, threshold, used, band)

    def choose(held_out: Sequence[str]) -> float:
        rest = [draw for draw in given.draws if draw.task not in held_out]
        return _choose(rest, threshold, bands, limit)

    chosen, found = None, [choose(fold) for fold in folds] if len(tasks) > 1 else []
    if found:
        used = {task: band for fold, band in zip(folds, found, strict=True) for task in fold}
        chosen = row(used, choose(()))
    return CascadeReport(
        leaves=len({draw.leaf for draw in given.draws}),
        tasks=len(tasks),
        repeats=given.repeats,
        left_out=given.left_out,
        limit=limit,
        rows=tuple(row(dict.fromkeys(tasks, band), band) for band in bands),
        chosen=chosen,
        folds=tuple(found),
    )


def cascade_table(found: CascadeReport) -> Table:
    """Return a row for each band, then the chosen one, out of fold."""
    named = [(f"{row.band:g}", row) for row in found.rows]
    if found.chosen is not None:
        named.append((f"{found.chosen.band:g}, out of fold", found.chosen))
    return Table(
        (
            *("band", "calls saved %", "95 %", "other outcome %", "95 %"),
            *("outside the band %", "95 %", "unscored %"),
            *(LEAF_SR.heading, "95 %", ROOT_SCORE.heading, "95 %", "cost"),
        ),
        tuple((name, *_cells(row)) for name, row in named),
    )


def cascade_remarks(found: CascadeReport) -> list[str]:
    """Describe what was simulated and how the band was chosen."""
    remarks = [
        f"{format_count(found.leaves, 'leaf', 'leaves')} of {format_count(found.tasks, 'task')}, "
        f"{format_count(found.repeats, 'repeat')}, each simulated on its own; "
        f"{found.left_out} left out."
    ]
    if found.chosen is None:
        return [*remarks, "One task is too few to choose a band."]
    band, limit = found.chosen.band, f"with at most {found.limit:g} % different outcomes"
    if band in [row.band for row in found.rows]:
        remarks.append(f"Band {band:g} is the narrowest {limit}.")
    else:
        remarks.append(f"There is no band {limit}: ask the strong judge about all leaves.")
    counts = sorted(Counter(found.folds).items())
    chosen = ", ".join(f"{band:g} in {format_count(count, 'part')}" for band, count in counts)
    remarks.append(
        "Quote the last row: each part of the tasks is judged with the band that was chosen on "
        f"the other parts ({chosen})."
    )
    return remarks


def _cells(row: CascadeRow) -> Iterator[str]:
    for share in (row.saved, row.error, row.outside):
        yield from (
            ("-", "-")
            if share is None
            else (f"{share.estimate:.1f}", f"{share.low:.1f} to {share.high:.1f}")
        )
    yield f"{row.unscored:.1f}"
    for moved in (row.leaf_sr, row.root_score):
        yield from ("-", "-") if moved is None else signed_cells(moved)
    yield "-" if row.cost_usd is None else f"${row.cost_usd:.2f}"


class _Outcome(NamedTuple):
    """The result of the cascade for a draw: was the strong judge asked, and the final score."""

    draw: Draw
    asked: bool
    value: float | None


def _simulate(draw: Draw, threshold: float, band: float) -> _Outcome:
    """Do as `copy_clear_scores` and the strong judge do in a live cascade."""
    asked = draw.cheap is None or abs(draw.cheap - threshold) <= band
    return _Outcome(draw, asked, draw.strong if asked else draw.cheap)


def _with_both(outcomes: Iterable[_Outcome]) -> Iterator[tuple[_Outcome, float, float]]:
    """Yield outcomes with the score of the cascade and of the strong judge, if both exist."""
    for one in outcomes:
        if one.value is not None and one.draw.strong is not None:
            yield one, one.value, one.draw.strong


def _choose(draws: Sequence[Draw], threshold: float, bands: Sequence[float], limit: float) -> float:
    """Return the narrowest band whose share of different outcomes is within the limit."""
    for band in sorted(bands):
        outcomes = (_simulate(draw, threshold, band) for draw in draws)
        wrong = [
            succeeds(value, threshold) != succeeds(strong, threshold)
            for _, value, strong in _with_both(outcomes)
        ]
        if wrong and 100 * sum(wrong) <= limit * len(wrong):
            return band
    return WIDEST


def _row(
    given: Draws,
    units: Sequence[WorkflowUnit],
    threshold: float,
    used: Mapping[str, float],
    band: float,
) -> CascadeRow:
    """Return the figures with the band that `used` has for each task."""
    outcomes = [_simulate(draw, threshold, used[draw.task]) for draw in given.draws]
    compared = list(_with_both(outcomes))
    passes = [
        (one.draw.task, 100.0 * succeeds(value, threshold), 100.0 * succeeds(strong, threshold))
        for one, value, strong in compared
    ]
    wrong = [(task, 100.0 * (own != strong)) for task, own, strong in passes]
    outside = [error for (one, _, _), error in zip(compared, wrong, strict=True) if not one.asked]
    costs = [draw.cheap_cost for draw in given.draws]
    costs += [one.draw.strong_cost for one in outcomes if one.asked]
    total = sum_costs(costs).total
    scores = ((one.draw.leaf, one.draw.repeat, own, strong) for one, own, strong in compared)
    return CascadeRow(
        band=band,
        saved=_share((one.draw.task, 100.0 * (not one.asked)) for one in outcomes),
        error=_share(wrong),
        outside=_share(outside) if outside else None,
        unscored=100.0 * sum(one.value is None for one in outcomes) / len(outcomes),
        leaf_sr=shift(passes, top=100.0),
        root_score=root_shift(scores, units),
        cost_usd=None if total is None else total / given.repeats,
    )


def _share(values: Iterable[tuple[str, float]]) -> Interval:
    return compute_interval(by_task(values), top=100.0)


def _value(row: VerdictRow) -> float | None:
    return row.verdict.value if isinstance(row.verdict, Scored) else None
