"""Combine the verdicts of several judges into one verdict for each leaf."""

from collections.abc import Iterable, Sequence
from statistics import fmean, median_low
from typing import Literal

from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow

Pooling = Literal["mean", "majority"]
LeafKey = tuple[str, int, str]


def combine_judges(rows: Iterable[VerdictRow], pooling: Pooling) -> tuple[VerdictRow, ...]:
    """Return a row for every leaf that all judges scored in all repeats; none for one judge.

    `mean` is the mean of the judges' means. `majority` is the lower median of all scores, which
    passes if and only if more than half of all scores do.
    """
    judges, leaves = group_by_leaf(rows)
    if len(judges) < 2:
        return ()
    name = f"panel, {pooling} of {' and '.join(judges)}"
    repeats = {judge: max(len(own.get(judge, ())) for own in leaves.values()) for judge in judges}
    pooled = []
    for (task, epoch, leaf), own in leaves.items():
        scores = {judge: list_scores(own.get(judge, ())) for judge in judges}
        if any(len(scores[judge]) < repeats[judge] for judge in judges):
            continue
        if pooling == "mean":
            value = fmean(map(fmean, scores.values()))
        else:
            value = median_low(score for given in scores.values() for score in given)
        key = VerdictKey(task=task, epoch=epoch, leaf=leaf, judge=name)
        pooled.append(VerdictRow(key=key, verdict=Scored(value=value)))
    return tuple(pooled)


def group_by_leaf(
    rows: Iterable[VerdictRow],
) -> tuple[list[str], dict[LeafKey, dict[str, list[VerdictRow]]]]:
    """Return the judges, and the rows of each leaf by judge, sorted by repeat."""
    leaves: dict[LeafKey, dict[str, list[VerdictRow]]] = {}
    for row in sorted(rows, key=lambda row: row.key.repeat):
        key = row.key
        own = leaves.setdefault((key.task, key.epoch, key.leaf), {})
        own.setdefault(key.judge, []).append(row)
    return sorted({judge for own in leaves.values() for judge in own}), leaves


def list_scores(rows: Sequence[VerdictRow]) -> list[float]:
    """Return the scores of the rows that have one."""
    return [row.verdict.value for row in rows if isinstance(row.verdict, Scored)]
