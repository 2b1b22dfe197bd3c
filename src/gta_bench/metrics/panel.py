"""Several judges as one: a verdict for each leaf from those of all of them."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median_low
from typing import Literal

from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow

Pooling = Literal["mean", "majority"]
LeafPlace = tuple[str, int, str]


def panel_name(pooling: Pooling, judges: Sequence[str]) -> str:
    """The name under which the panel's verdicts stand in tables."""
    return f"panel, {pooling} of {' and '.join(judges)}"


def panel_rows(rows: Iterable[VerdictRow], pooling: Pooling) -> tuple[VerdictRow, ...]:
    """A row for every leaf that all judges scored in all their repeats; none for fewer than two.

    `mean` is the mean of the judges' means. `majority` is the middle score (of two middle ones the
    lower), which passes if and only if more than half of all scores do.
    """
    judges, leaves = by_leaf(rows)
    if len(judges) < 2:
        return ()
    name = panel_name(pooling, judges)
    return tuple(_pooled(leaves, judges, pooling, name))


def by_leaf(
    rows: Iterable[VerdictRow],
) -> tuple[list[str], dict[LeafPlace, dict[str, list[VerdictRow]]]]:
    """The judges, and every leaf's rows by judge; repeats in their order."""
    leaves: dict[LeafPlace, dict[str, list[VerdictRow]]] = {}
    for row in sorted(rows, key=lambda row: row.key.repeat):
        key = row.key
        own = leaves.setdefault((key.task, key.epoch, key.leaf), {})
        own.setdefault(key.judge, []).append(row)
    return sorted({judge for own in leaves.values() for judge in own}), leaves


def scores_of(rows: Sequence[VerdictRow]) -> list[float]:
    """The scores among the rows."""
    return [row.verdict.value for row in rows if isinstance(row.verdict, Scored)]


def _pooled(
    leaves: dict[LeafPlace, dict[str, list[VerdictRow]]],
    judges: Sequence[str],
    pooling: Pooling,
    name: str,
) -> Iterator[VerdictRow]:
    repeats = {judge: max(len(own.get(judge, ())) for own in leaves.values()) for judge in judges}
    for (task, epoch, leaf), own in leaves.items():
        scores = {judge: scores_of(own.get(judge, ())) for judge in judges}
        if any(len(scores[judge]) < repeats[judge] for judge in judges):
            continue
        if pooling == "mean":
            value = fmean(map(fmean, scores.values()))
        else:
            value = median_low(score for given in scores.values() for score in given)
        key = VerdictKey(task=task, epoch=epoch, leaf=leaf, judge=name)
        yield VerdictRow(key=key, verdict=Scored(value=value))
