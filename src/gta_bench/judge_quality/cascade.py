"""A cheap judge before a strong one, simulated as it runs: what that saves, and where it errs.

Each repeat of the judges is a run of its own: a live cascade decides by one score of the cheap
judge whether the strong one is asked, and not by a mean, which is less noisy. A leaf that the cheap
judge leaves unscored goes to the strong one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gta_bench.errors import counted
from gta_bench.judge_quality.paired_judges import by_task, signed
from gta_bench.metrics.panel import LeafPlace, by_leaf
from gta_bench.metrics.strict.workflow import BEST, root_score, succeeds
from gta_bench.metrics.table import LEAF_SR, ROOT_SCORE
from gta_bench.records.cost import Cost, recorded_cost, sum_costs
from gta_bench.records.judges import CascadeReport, CascadeRow
from gta_bench.records.statistics import Interval
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictRow
from gta_bench.reports.tables import Table
from gta_bench.statistics.pooled import difference_of, interval_of

BANDS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
# The largest share of other outcomes that a chosen band may have, in percent.
LIMIT = 5.0
FOLDS = 10
# Within this band of any threshold lies every score: the strong judge is asked for all.
WIDEST = BEST


class Draw(NamedTuple):
    """One verdict of either judge on a leaf, None where it has no score, and their costs."""

    place: LeafPlace
    repeat: int
    cheap: float | None
    strong: float | None
    cheap_cost: Cost
    strong_cost: Cost

    @property
    def task(self) -> str:
        """The task that the leaf belongs to."""
        return self.place[0]


class Draws(NamedTuple):
    """What there is to simulate from; `left_out` leaves lack one judge or have other evidence."""

    draws: tuple[Draw, ...]
    repeats: int
    left_out: int


def draw_verdicts(rows: Iterable[VerdictRow], cheap: str, strong: str) -> Draws:
    """The verdicts of both judges, repeat by repeat; the shorter list begins again."""
    _, leaves = by_leaf(row for row in rows if row.key.judge in (cheap, strong))
    numbers = [
        sorted({row.key.repeat for own in leaves.values() for row in own.get(judge, ())})
        for judge in (cheap, strong)
    ]
    repeats = max(map(len, numbers)) if all(numbers) else 0
    found: list[Draw] = []
    for place, own in sorted(leaves.items()):
        scored = [row for said in own.values() for row in said if _value(row) is not None]
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
                costs = recorded_cost(one), recorded_cost(two)
                found.append(Draw(place, repeat, _value(one), _value(two), *costs))
    return Draws(tuple(found), repeats, len(leaves) - len({draw.place for draw in found}))


def simulate_cascade(
    given: Draws,
    units: Sequence[WorkflowUnit],
    *,
    threshold: float,
    bands: Sequence[float] = BANDS,
    limit: float = LIMIT,
) -> CascadeReport:
    """Every band, and the one to choose with its figures out of fold.

    If no band keeps the share of other outcomes within the limit, the strong judge is asked for
    all.
    """
    tasks = sorted({draw.task for draw in given.draws})
    folds = [tasks[place::FOLDS] for place in range(min(FOLDS, len(tasks)))]

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
        leaves=len({draw.place for draw in given.draws}),
        tasks=len(tasks),
        repeats=given.repeats,
        left_out=given.left_out,
        limit=limit,
        rows=tuple(row(dict.fromkeys(tasks, band), band) for band in bands),
        chosen=chosen,
        folds=tuple(found),
    )


def cascade_table(found: CascadeReport) -> Table:
    """A row for each band; then the chosen one, out of fold."""
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
    """What was simulated, and how the band was chosen."""
    said = [
        f"{counted(found.leaves, 'leaf', 'leaves')} of {counted(found.tasks, 'task')}, "
        f"{counted(found.repeats, 'repeat')} one by one; {found.left_out} left out."
    ]
    if found.chosen is None:
        return [*said, "One task is too few to choose a band."]
    band, limit = found.chosen.band, f"within {found.limit:g} % of other outcomes"
    if band in [row.band for row in found.rows]:
        said.append(f"Band {band:g} is the narrowest {limit}.")
    else:
        said.append(f"No band stays {limit}: ask the strong judge for all.")
    counts = sorted(Counter(found.folds).items())
    chosen = ", ".join(f"{band:g} in {counted(count, 'part')}" for band, count in counts)
    said.append(
        "Quote the last row: each part of the tasks is judged with the band that the others "
        f"choose ({chosen})."
    )
    return said


def _cells(row: CascadeRow) -> Iterator[str]:
    for share in (row.saved, row.error, row.outside):
        yield from (
            ("-", "-")
            if share is None
            else (f"{share.estimate:.1f}", f"{share.low:.1f} to {share.high:.1f}")
        )
    yield f"{row.unscored:.1f}"
    for moved in (row.leaf_sr, row.root_score):
        yield from ("-", "-") if moved is None else (f"{moved.estimate:+.2f}", signed(moved))
    yield "-" if row.cost_usd is None else f"${row.cost_usd:.2f}"


class _Outcome(NamedTuple):
    """What comes of a draw: whether the strong judge is asked, and the score in the end."""

    draw: Draw
    asked: bool
    value: float | None


class _Compared(NamedTuple):
    """A score of the cascade beside that of the strong judge alone."""

    draw: Draw
    asked: bool
    value: float
    strong: float


def _simulate(draw: Draw, threshold: float, band: float) -> _Outcome:
    """As `take_over` and the strong judge do it."""
    asked = draw.cheap is None or abs(draw.cheap - threshold) <= band
    return _Outcome(draw, asked, draw.strong if asked else draw.cheap)


def _compared(outcomes: Iterable[_Outcome]) -> Iterator[_Compared]:
    for draw, asked, value in outcomes:
        if value is not None and draw.strong is not None:
            yield _Compared(draw, asked, value, draw.strong)


def _differs(one: _Compared, threshold: float) -> bool:
    return succeeds(one.value, threshold) != succeeds(one.strong, threshold)


def _choose(draws: Sequence[Draw], threshold: float, bands: Sequence[float], limit: float) -> float:
    """The narrowest band whose share of other outcomes is within the limit."""
    for band in sorted(bands):
        compared = list(_compared(_simulate(draw, threshold, band) for draw in draws))
        wrong = sum(_differs(one, threshold) for one in compared)
        if compared and 100 * wrong <= limit * len(compared):
            return band
    return WIDEST


def _row(
    given: Draws,
    units: Sequence[WorkflowUnit],
    threshold: float,
    used: Mapping[str, float],
    band: float,
) -> CascadeRow:
    """The figures with the band that is used for each task."""
    outcomes = [_simulate(draw, threshold, used[draw.task]) for draw in given.draws]
    compared = list(_compared(outcomes))
    wrong = [(one.draw.task, 100.0 * _differs(one, threshold)) for one in compared]
    outside = [error for one, error in zip(compared, wrong, strict=True) if not one.asked]
    passed, passed_strong = (
        by_task((one.draw.task, 100.0 * succeeds(value(one), threshold)) for one in compared)
        for value in (_own, _strong)
    )
    costs = [draw.cheap_cost for draw in given.draws]
    costs += [one.draw.strong_cost for one in outcomes if one.asked]
    total = sum_costs(costs).total
    return CascadeRow(
        band=band,
        saved=_share((one.draw.task, 100.0 * (not one.asked)) for one in outcomes),
        error=_share(wrong),
        outside=_share(outside) if outside else None,
        unscored=100.0 * sum(one.value is None for one in outcomes) / len(outcomes),
        leaf_sr=difference_of(passed, passed_strong, top=100.0).interval,
        root_score=_root_shift(compared, units),
        cost_usd=None if total is None else total / given.repeats,
    )


def _share(values: Iterable[tuple[str, float]]) -> Interval:
    return interval_of(by_task(values), top=100.0)


def _own(one: _Compared) -> float:
    return one.value


def _strong(one: _Compared) -> float:
    return one.strong


def _root_shift(compared: Sequence[_Compared], units: Sequence[WorkflowUnit]) -> Interval | None:
    """Root Score, cascade minus strong judge, over units whose leaves all have both scores."""
    own, strong = (by_task(_roots(compared, units, value)) for value in (_own, _strong))
    return difference_of(own, strong, top=BEST).interval if len(own.numerators) else None


def _roots(
    compared: Sequence[_Compared],
    units: Sequence[WorkflowUnit],
    value: Callable[[_Compared], float],
) -> Iterator[tuple[str, float]]:
    scores: dict[tuple[str, int], dict[int, dict[str, float]]] = {}
    for one in compared:
        task, epoch, leaf = one.draw.place
        repeats = scores.setdefault((task, epoch), {})
        repeats.setdefault(one.draw.repeat, {})[leaf] = value(one)
    for unit in units:
        for leaves in scores.get((unit.task.id, unit.epoch), {}).values():
            root = root_score(unit.task.checkpoints, leaves)
            if root is not None:
                yield unit.task.id, root


def _value(row: VerdictRow) -> float | None:
    return row.verdict.value if isinstance(row.verdict, Scored) else None
