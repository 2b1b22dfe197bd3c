"""What the page of comparisons shows: all tested pairs of a board, and the data for site.js."""

from collections.abc import Sequence
from typing import NamedTuple

from gta_bench.errors import format_count
from gta_bench.leaderboard.tables import BOARDS, BoardTable, EntryComparison, Row
from gta_bench.metrics.table import label
from gta_bench.web.components import PlotRow, PlotTick
from gta_bench.web.site_views import place_rows, view_cells


class PairRow(NamedTuple):
    """Two systems of a table and the test of their difference, as text."""

    first: str
    second: str
    cells: tuple[str, ...]
    verdict: str


def view_pairs(table: BoardTable) -> tuple[PairRow, ...]:
    """Return the tests of all pairs that are shown."""
    return tuple(
        PairRow(
            one.first.system,
            one.second.system,
            (
                points_text(one.difference.estimate),
                f"{points_text(one.difference.low)} to {points_text(one.difference.high)}",
                p_text(one.p_value),
                p_text(one.adjusted),
                "paired" if one.paired else "unpaired",
            ),
            verdict_text(one),
        )
        for one in table.comparisons
    )


def describe_pairs(table: BoardTable) -> str:
    """Say how many pairs of which systems are shown."""
    text = format_count(len(table.comparisons), "pair")
    if len(table.compared) < len(table.ranked):
        text += f" of the first {len(table.compared)} among {len(table.ranked)} systems"
    return text


def compare_data(tables: Sequence[BoardTable]) -> dict[str, object]:
    """Return the data with which site.js compares two rows."""
    return {
        "entries": [
            _entry_data(row, place, plot.ticks)
            for table in tables
            for plot in [place_rows(table, table.compared)]
            for row, place in zip(table.compared, plot.rows, strict=True)
        ],
        "pairs": {
            f"{one.first.id} {one.second.id}": _sentence(table, one)
            for table in tables
            for one in table.comparisons
        },
    }


def _entry_data(row: Row, place: PlotRow, ticks: Sequence[PlotTick]) -> dict[str, object]:
    entry, first = row.entry, label(row.headline.metric)
    # The score that orders the board comes first.
    cells = sorted(view_cells(row), key=lambda cell: cell.name != first)
    scores = [["Tier", ", ".join([entry.status, *entry.marks]), ""]]
    scores += [[one.name, one.text, one.small] for one in cells]
    if entry.attempts is not None:
        scores.append(["Attempts", str(entry.attempts), ""])
    return {
        "ticks": [tick.label for tick in ticks],
        "id": entry.id,
        "system": entry.system,
        "place": [place.at, place.low, place.high, place.point.text, place.point.small],
        "scores": scores,
        "findings": [finding.message for finding in row.findings],
        "tier": entry.status,
    }


def _sentence(table: BoardTable, one: EntryComparison) -> str:
    """Return the verdict and the test; site.js puts the names of the systems before it."""
    headline, found = label(BOARDS[table.board].headline), one.difference
    gap, low, high = map(points_text, (found.estimate, found.low, found.high))
    kind = "paired on the same tasks" if one.paired else "unpaired: results by task are missing"
    return (
        f"{verdict_text(one)}. {headline} differs by {gap} points, 95 % interval {low} to {high}; "
        f"p {p_text(one.p_value)}, corrected for {format_count(table.pairs, 'comparison')} "
        f"{p_text(one.adjusted)}; {kind}."
    )


def points_text(value: float) -> str:
    """Return percentage points with a sign."""
    return f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def p_text(value: float) -> str:
    """Return a p-value with three decimals."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def verdict_text(comparison: EntryComparison) -> str:
    """Say whether a difference is significant."""
    return "told apart" if comparison.adjusted < 0.05 else "cannot be told apart"
