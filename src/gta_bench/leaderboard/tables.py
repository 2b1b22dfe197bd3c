"""Tables of entries with intervals, comparisons, and groups that cannot be told apart.

Two systems with results by task are compared on the same tasks. Published rows have only totals, so
comparisons with them are unpaired, which gives wider intervals.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Final, NamedTuple, cast, get_args

from gta_bench.errors import UsageError
from gta_bench.leaderboard.entries import check_entry, find_released_size
from gta_bench.metrics import table as metric_table
from gta_bench.records.leaderboard import Board, Entry, EntryFinding, MetricName, Score
from gta_bench.records.run import RunMode
from gta_bench.records.statistics import Difference, Interval, Standing
from gta_bench.statistics.pooled import Ratio, compute_difference, compute_interval
from gta_bench.statistics.proportions import (
    holm,
    newcombe,
    rank_systems,
    two_proportions,
    wilson,
)


class BoardText(NamedTuple):
    """The texts of a board, which is sorted by the primary metric of `mode`."""

    title: str
    page: str
    about: str
    mode: RunMode

    @property
    def headline(self) -> MetricName:
        """The metric by which the board is sorted."""
        return cast(MetricName, metric_table.primary(self.mode).name)


BOARDS: Final[Mapping[Board, BoardText]] = {
    "workflow": BoardText(
        "GTA-Workflow, models",
        "workflow.html",
        "132 long, open-ended tasks with 1,156 leaves. Sorted by "
        f"{metric_table.ROOT_SR.label}, the share of tasks whose checkpoint tree passes.",
        "workflow",
    ),
    "workflow-30": BoardText(
        "GTA-Workflow, harnesses",
        "harnesses.html",
        f"30 of the 132 tasks with 276 leaves. Sorted by {metric_table.ROOT_SR.label}. In the "
        "published code the judge is shown the Office and CSV files of OpenClaw and Manus, but not "
        "those of Lagent.",
        "workflow",
    ),
    "atomic": BoardText(
        "GTA-Atomic",
        "atomic.html",
        f"229 short tool-use tasks. Sorted by {metric_table.ANS_ACC.label}, the share of correct "
        "final answers in the 172 tasks that have one.",
        "end-to-end",
    ),
}
# How many of the best systems are shown in pairs, whose number grows with the square of the rows.
COMPARED: Final = 40
# The metrics of an entry, in the order of the columns.
BOARD_METRICS: Final[tuple[MetricName, ...]] = get_args(MetricName)
# Leaves and calls of one task are correlated, so Wilson's interval of their share is too narrow.
NESTED: Final = frozenset(
    name for name in BOARD_METRICS if metric_table.metric(name).interval == "clustered share"
)


class ScoreCell(NamedTuple):
    """One score of a row, with its text and interval."""

    metric: MetricName
    text: str
    value: float
    interval: Interval | None


class Row(NamedTuple):
    """One entry in its table; without a standing if it cannot be ranked among the others."""

    entry: Entry
    cells: tuple[ScoreCell | None, ...]
    standing: Standing | None
    findings: tuple[EntryFinding, ...]
    headline: ScoreCell


class EntryComparison(NamedTuple):
    """Two entries of one table, the better one first; `paired` if both have results by task."""

    first: Entry
    second: Entry
    difference: Interval
    p_value: float
    adjusted: float
    paired: bool


class BoardTable(NamedTuple):
    """One plot of a board: a release, and what was submitted since, best first.

    All pairs of ranked rows are tested; those of the best are shown. Rows that cannot be ranked are
    the last ones.
    """

    board: Board
    release: str
    metrics: tuple[MetricName, ...]
    rows: tuple[Row, ...]
    comparisons: tuple[EntryComparison, ...]

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that can be compared with each other."""
        return tuple(row for row in self.rows if row.standing is not None)

    @property
    def unranked(self) -> tuple[Row, ...]:
        """The rows that stand apart."""
        return tuple(row for row in self.rows if row.standing is None)

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows whose comparisons are shown."""
        return self.ranked[:COMPARED]

    @property
    def pairs(self) -> int:
        """The number of pairs that were tested."""
        return len(self.ranked) * (len(self.ranked) - 1) // 2

    def groups(self) -> list[list[Row]]:
        """Return the ranked rows by group, best first."""
        found: dict[int, list[Row]] = {}
        for row in self.rows:
            if row.standing is not None:
                found.setdefault(row.standing.group, []).append(row)
        return [found[number] for number in sorted(found)]

    def group(self, number: int) -> list[Row]:
        """Return the rows of one group; the first is 1."""
        groups = self.groups()
        return groups[number - 1] if number <= len(groups) else []


def build_tables(entries: Sequence[Entry]) -> tuple[BoardTable, ...]:
    """Return a table for every board and published release, newest release first.

    Releases have pipelines of their own, so each has its own table. A submission joins the release
    that was the newest when it was run: it never opens a table beside published rows.
    """
    found = []
    for board in BOARDS:
        own = [one for one in entries if one.board == board]
        published = sorted({one.release for one in own if one.status == "published"})
        joined: dict[str, list[Entry]] = {}
        for entry in own:
            joined.setdefault(_find_release(entry, published), []).append(entry)
        found += [_table(board, release, joined[release]) for release in sorted(joined)[::-1]]
    return tuple(found)


def _find_release(entry: Entry, published: Sequence[str]) -> str:
    """Return the published release that an entry stands beside, or its own if there is none."""
    if entry.status == "published" or not published:
        return entry.release
    return max((one for one in published if one <= entry.release), default=published[0])


def find_interval(entry: Entry, metric: MetricName) -> Interval | None:
    """Return the interval of a mean over tasks: that of a run's page, or Wilson's of a total."""
    score = entry.scores[metric]
    if not 0 <= score.value <= 100:
        return None
    if entry.by_task and metric == BOARDS[entry.board].headline:
        return compute_interval(Ratio.of_mean([*entry.by_task.values()]))
    n = score.n or find_released_size(entry, metric)
    return None if n is None else wilson(_successes(score, n), n)


def _table(board: Board, release: str, entries: Sequence[Entry]) -> BoardTable:
    headline = BOARDS[board].headline
    for entry in entries:
        _size(entry, headline)
    ordered = sorted(
        entries, key=lambda entry: (-entry.scores[headline].value, entry.system.lower())
    )
    ranked = [one for one in ordered if is_ranked(one, headline)]
    apart = [one for one in ordered if not is_ranked(one, headline)]
    metrics = tuple(name for name in BOARD_METRICS if any(name in one.scores for one in ordered))
    comparisons, p_values = _compare(ranked, headline)
    placed = rank_systems([entry.scores[headline].value for entry in ranked], p_values)
    rows = []
    for entry, standing in zip([*ranked, *apart], [*placed, *[None] * len(apart)], strict=True):
        cells = tuple(_cell(entry, name) if name in entry.scores else None for name in metrics)
        rows.append(Row(entry, cells, standing, check_entry(entry), _cell(entry, headline)))
    return BoardTable(board, release, metrics, tuple(rows), comparisons)


def is_ranked(entry: Entry, metric: MetricName) -> bool:
    """Return whether a metric of the entry was computed as in published rows.

    The submitter chooses the model that compares free texts, and a lenient one gives more points.
    """
    return not (metric_table.metric(metric).by_similarity and "other similarity" in entry.marks)


def _cell(entry: Entry, metric: MetricName) -> ScoreCell:
    score = entry.scores[metric]
    text = f"{score.value:.{score.decimals}f}"
    return ScoreCell(metric, text, score.value, find_interval(entry, metric))


def _compare(
    entries: Sequence[Entry], metric: MetricName
) -> tuple[tuple[EntryComparison, ...], dict[tuple[int, int], float]]:
    sizes = [_size(entry, metric) for entry in entries]
    counts = [_successes(entry.scores[metric], n) for entry, n in zip(entries, sizes, strict=True)]
    pairs = list(combinations(range(len(entries)), 2))
    paired = {(one, two): _compare_tasks(entries[one], entries[two]) for one, two in pairs}
    p_values = [
        _p_value(counts[one], sizes[one], counts[two], sizes[two])
        if (own := paired[one, two]) is None
        else own.p_value
        for one, two in pairs
    ]
    compared = []
    for (one, two), p_value, adjusted in zip(pairs, p_values, holm(p_values), strict=True):
        if two < COMPARED:
            own = paired[one, two]
            difference = (
                newcombe(counts[one], sizes[one], counts[two], sizes[two])
                if own is None
                else own.interval
            )
            compared.append(
                EntryComparison(
                    entries[one], entries[two], difference, p_value, adjusted, own is not None
                )
            )
    return tuple(compared), dict(zip(pairs, p_values, strict=True))


def _compare_tasks(first: Entry, second: Entry) -> Difference | None:
    """Compare two entries on the same tasks; None if one of them has no results by task."""
    one, two = first.by_task, second.by_task
    if not one or not two or one.keys() != two.keys():
        return None
    return compute_difference(
        Ratio.of_mean([*one.values()]), Ratio.of_mean([two[task] for task in one])
    )


@cache
def _p_value(first: float, first_n: int, second: float, second_n: int) -> float:
    """Return the cached p-value; large tables have many equal counts."""
    return two_proportions(first, first_n, second, second_n).p_value


def _size(entry: Entry, headline: MetricName) -> int:
    """Return the number of tasks behind the headline, or raise an error if it is unusable."""
    found = find_interval(entry, headline) if headline in entry.scores else None
    if found is None:
        raise UsageError(
            f"Entry {entry.id!r} has no {metric_table.label(headline)} between 0 and 100, by "
            "which its board is sorted. Fix the entry; `gta leaderboard check` shows what is wrong."
        )
    return found.n


def _successes(score: Score, n: int) -> float:
    """Return the count of a proportion if it is known, else an estimate from its value."""
    return score.value * n / 100 if score.k is None else float(score.k)


def system_key(entry: Entry) -> str:
    """Return the same key for `claude3-opus` and `Claude-3-Opus`, which are one system."""
    return re.sub(r"[\W_]", "", entry.system.casefold()) or entry.system


class Career(NamedTuple):
    """One system in the releases of a board, oldest first."""

    system: str
    rows: tuple[tuple[str, Row], ...]

    @property
    def unchanged(self) -> bool:
        """Whether all releases have the same scores."""
        return all(row.entry.scores == self.rows[0][1].entry.scores for _, row in self.rows)


def find_careers(tables: Sequence[BoardTable]) -> list[Career]:
    """Return the systems in more than one release of a board, sorted by their newest score."""
    found: dict[str, list[tuple[str, Row]]] = {}
    for table in sorted(tables, key=lambda table: table.release):
        for row in table.rows:
            found.setdefault(system_key(row.entry), []).append((table.release, row))
    kept = [Career(rows[-1][1].entry.system, tuple(rows)) for rows in found.values()]
    several = [career for career in kept if len(career.rows) > 1]
    return sorted(several, key=lambda career: -career.rows[-1][1].headline.value)
