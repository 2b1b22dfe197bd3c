"""Entries beside each other: intervals, comparisons, and groups that cannot be told apart.

Published rows have no results by task, so their comparisons are unpaired, which is the wider way.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Final, NamedTuple, cast, get_args

from gta_bench.errors import UsageError
from gta_bench.metrics import table as metric_table
from gta_bench.metrics.consistency import check_entry, released_size
from gta_bench.records.leaderboard import Board, Entry, EntryFinding, MetricName, Score
from gta_bench.records.run import RunMode
from gta_bench.records.statistics import Interval, Standing
from gta_bench.statistics.proportions import (
    holm,
    newcombe,
    rank_systems,
    two_proportions,
    wilson,
)


class BoardText(NamedTuple):
    """What a reader is told of a board; it is ordered by the primary metric of `mode`."""

    title: str
    page: str
    about: str
    mode: RunMode

    @property
    def headline(self) -> MetricName:
        """The metric that the board is ordered by."""
        return cast(MetricName, metric_table.primary(self.mode).name)


BOARDS: Final[Mapping[Board, BoardText]] = {
    "workflow": BoardText(
        "GTA-Workflow, models",
        "workflow.html",
        "132 long, open-ended tasks with 1,156 leaves. Ordered by "
        f"{metric_table.ROOT_SR.label}, the share of tasks whose checkpoint tree passes.",
        "workflow",
    ),
    "workflow-30": BoardText(
        "GTA-Workflow, harnesses",
        "harnesses.html",
        f"30 of the 132 tasks with 276 leaves. Ordered by {metric_table.ROOT_SR.label}. In the "
        "published code the judge is shown the Office and CSV files of OpenClaw and Manus, but not "
        "those of Lagent.",
        "workflow",
    ),
    "atomic": BoardText(
        "GTA-Atomic",
        "atomic.html",
        f"229 short tool-use tasks. Ordered by {metric_table.ANS_ACC.label}, the right final "
        "answers of the 172 tasks that have one.",
        "end-to-end",
    ),
}
# The best of a table that are set against each other: pairs grow by the square of the rows, and
# nobody reads 100,000 of them.
COMPARED: Final = 40
# What an entry may state, in the order of the columns.
BOARD_METRICS: Final[tuple[MetricName, ...]] = get_args(MetricName)
# Leaves and calls of a task hang together, so Wilson's interval of their share is too narrow.
NESTED: Final = frozenset(
    name for name in BOARD_METRICS if metric_table.metric(name).interval == "clustered share"
)


class ScoreCell(NamedTuple):
    """One score of a row, as text and as its interval in percent."""

    metric: MetricName
    text: str
    value: float
    interval: Interval | None


class Row(NamedTuple):
    """One entry in its table."""

    entry: Entry
    cells: tuple[ScoreCell | None, ...]
    standing: Standing
    findings: tuple[EntryFinding, ...]
    headline: ScoreCell


class EntryComparison(NamedTuple):
    """Two entries of one table: the better one first."""

    first: Entry
    second: Entry
    difference: Interval
    p_value: float
    adjusted: float


class BoardTable(NamedTuple):
    """One board of one release, best first; all pairs are tested, those of the best are told."""

    board: Board
    release: str
    metrics: tuple[MetricName, ...]
    rows: tuple[Row, ...]
    comparisons: tuple[EntryComparison, ...]

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows whose comparisons are told."""
        return self.rows[:COMPARED]

    @property
    def pairs(self) -> int:
        """How many pairs were tested."""
        return len(self.rows) * (len(self.rows) - 1) // 2

    def group(self, number: int) -> list[Row]:
        """The rows of one group."""
        return [row for row in self.rows if row.standing.group == number]


def tables(entries: Sequence[Entry]) -> tuple[BoardTable, ...]:
    """A table for every board and release that has entries, newest release first."""
    return tuple(
        _table(board, release, [one for one in entries if _key(one) == (board, release)])
        for board in BOARDS
        for release in sorted({one.release for one in entries if one.board == board}, reverse=True)
    )


def interval(entry: Entry, metric: MetricName) -> Interval | None:
    """Wilson's interval of a score that is a share, or a mean of values from 0 to 1."""
    score = entry.scores[metric]
    n = score.n or released_size(entry, metric)
    if n is None or not 0 <= score.value <= 100:
        return None
    return wilson(_successes(score, n), n)


def _table(board: Board, release: str, entries: Sequence[Entry]) -> BoardTable:
    headline = BOARDS[board].headline
    for entry in entries:
        _size(entry, headline)
    ranked = sorted(
        entries, key=lambda entry: (-entry.scores[headline].value, entry.system.lower())
    )
    metrics = tuple(name for name in BOARD_METRICS if any(name in one.scores for one in ranked))
    comparisons, p_values = _compare(ranked, headline)
    placed = rank_systems([entry.scores[headline].value for entry in ranked], p_values)
    rows = tuple(_row(*pair, metrics, headline) for pair in zip(ranked, placed, strict=True))
    return BoardTable(board, release, metrics, rows, comparisons)


def _row(
    entry: Entry, standing: Standing, metrics: Sequence[MetricName], headline: MetricName
) -> Row:
    cells = tuple(_cell(entry, name) if name in entry.scores else None for name in metrics)
    return Row(entry, cells, standing, check_entry(entry), _cell(entry, headline))


def _cell(entry: Entry, metric: MetricName) -> ScoreCell:
    score = entry.scores[metric]
    text = f"{score.value:.{score.decimals}f}"
    return ScoreCell(metric, text, score.value, interval(entry, metric))


def _compare(
    entries: Sequence[Entry], metric: MetricName
) -> tuple[tuple[EntryComparison, ...], dict[tuple[int, int], float]]:
    sizes = [_size(entry, metric) for entry in entries]
    counts = [_successes(entry.scores[metric], n) for entry, n in zip(entries, sizes, strict=True)]
    pairs = list(combinations(range(len(entries)), 2))
    p_values = [_p_value(counts[one], sizes[one], counts[two], sizes[two]) for one, two in pairs]
    compared = tuple(
        EntryComparison(
            entries[one],
            entries[two],
            newcombe(counts[one], sizes[one], counts[two], sizes[two]),
            p_value,
            adjusted,
        )
        for (one, two), p_value, adjusted in zip(pairs, p_values, holm(p_values), strict=True)
        if two < COMPARED
    )
    return compared, dict(zip(pairs, p_values, strict=True))


@cache
def _p_value(first: float, first_n: int, second: float, second_n: int) -> float:
    """Large tables ask for the same few counts again and again."""
    return two_proportions(first, first_n, second, second_n).p_value


def _size(entry: Entry, headline: MetricName) -> int:
    """How many tasks the headline is a share of; an entry without a usable one has no rank."""
    found = interval(entry, headline) if headline in entry.scores else None
    if found is None:
        raise UsageError(
            f"Entry {entry.id!r} has no {metric_table.label(headline)} between 0 and 100, by "
            "which its board is ordered. Fix it; `gta leaderboard check` says more."
        )
    return found.n


def _successes(score: Score, n: int) -> float:
    """The count behind a share where it is known, else what the rounded value comes to."""
    return score.value * n / 100 if score.k is None else float(score.k)


def _key(entry: Entry) -> tuple[Board, str]:
    return entry.board, entry.release


class Career(NamedTuple):
    """One system in the releases of a board, oldest first."""

    system: str
    rows: tuple[tuple[str, Row], ...]

    @property
    def unchanged(self) -> bool:
        """Whether all releases state the very same scores."""
        return all(row.entry.scores == self.rows[0][1].entry.scores for _, row in self.rows)


def careers(tables: Sequence[BoardTable]) -> list[Career]:
    """Systems that are in more than one release of the same board, by their newest score."""
    found: dict[str, list[tuple[str, Row]]] = {}
    for table in sorted(tables, key=lambda table: table.release):
        for row in table.rows:
            found.setdefault(_name(row.entry.system), []).append((table.release, row))
    kept = [Career(rows[-1][1].entry.system, tuple(rows)) for rows in found.values()]
    several = [career for career in kept if len(career.rows) > 1]
    return sorted(several, key=lambda career: -career.rows[-1][1].headline.value)


def _name(system: str) -> str:
    """`claude3-opus` and `Claude-3-Opus` are one system."""
    return re.sub(r"[^a-z0-9]", "", system.lower())
