"""The leaderboard as a folder of plain HTML: no server, nothing loaded from elsewhere."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gta_bench.leaderboard.tables import (
    BOARD_METRICS,
    BOARDS,
    NESTED,
    BoardTable,
    EntryComparison,
    Row,
    ScoreCell,
    build_tables,
    find_careers,
)
from gta_bench.metrics.table import label, metric
from gta_bench.records.leaderboard import Board, Entry
from gta_bench.records.statistics import Interval
from gta_bench.web.pages import asset, render

ASSETS: Final = ("style.css", "site.js")


class _Plot(NamedTuple):
    """Where an interval and its estimate lie on an axis from 0 to 100."""

    low: float
    high: float
    middle: float


def build_site(entries: Sequence[Entry], folder: Path) -> list[Path]:
    """Write every page into the folder; the files written."""
    made = build_tables(entries)
    folder.mkdir(parents=True, exist_ok=True)
    pages = _pages(made) | {name: asset(name) for name in ASSETS}
    for name, content in pages.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in pages]


def _pages(made: Sequence[BoardTable]) -> dict[str, str]:
    by_board = {
        board: own for board in BOARDS if (own := [table for table in made if table.board == board])
    }
    common = _common(by_board)
    rows = [(table, row) for table in made for row in table.rows]
    newest = {board: own[0] for board, own in by_board.items()}
    told = {board: find_careers(own) for board, own in by_board.items()}
    return {
        "index.html": render(
            "site_index.html", **common, page="index.html", newest=newest, rows=rows
        ),
        **{
            BOARDS[board].page: render(
                "site_board.html", **common, page=BOARDS[board].page, text=BOARDS[board], tables=own
            )
            for board, own in by_board.items()
        },
        "compare.html": render(
            "site_compare.html",
            **common,
            page="compare.html",
            tables=made,
            data=_compare_data(made),
        ),
        "history.html": render(
            "site_history.html", **common, page="history.html", tables=made, careers=told
        ),
    }


def _common(boards: Iterable[Board]) -> dict[str, object]:
    """What every template may use."""
    return {
        "boards": {board: BOARDS[board] for board in boards},
        "labels": {name: label(name) for name in BOARD_METRICS},
        "meanings": {name: metric(name).meaning for name in BOARD_METRICS},
        "nested": NESTED,
        "span": span,
        "plot": plot,
        "axis": axis,
        "verdict": verdict,
        "points": points,
        "p_text": p_text,
        "anchor": anchor,
    }


def span(interval: Interval | None) -> str:
    """`9.4 to 21.4`, in percent; nothing where there is no interval."""
    if interval is None:
        return ""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def axis(table: BoardTable) -> int:
    """The end of the axis that all intervals of the table share, in percent."""
    highest = max(100 * row.headline.interval.high for row in table.rows if row.headline.interval)
    return min(100, 10 * -int(-highest // 10))


def plot(cell: ScoreCell, end: int) -> _Plot:
    """The interval's place on an axis of 100 units that stands for 0 to `end` percent."""
    assert cell.interval is not None
    low, high = (round(100 * 100 * x / end, 1) for x in (cell.interval.low, cell.interval.high))
    return _Plot(low, high, round(100 * cell.value / end, 1))


def points(value: float) -> str:
    """Percentage points with their sign."""
    return f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def p_text(value: float) -> str:
    """A p-value in as many digits as it deserves."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def verdict(comparison: EntryComparison) -> str:
    """Whether a difference is one, in a few words."""
    return "told apart" if comparison.adjusted < 0.05 else "cannot be told apart"


def anchor(table: BoardTable) -> str:
    """The id of a table on its page."""
    return f"{table.board}-{table.release}"


def _compare_data(made: Sequence[BoardTable]) -> dict[str, object]:
    """What the comparison page shows when two rows are chosen."""
    return {
        "entries": [_shown(row) for table in made for row in table.compared],
        "pairs": {
            f"{one.first.id} {one.second.id}": _sentence(table, one)
            for table in made
            for one in table.comparisons
        },
    }


def _shown(row: Row) -> dict[str, object]:
    costs = row.entry.costs
    scores = [[label(cell.metric), cell.text, span(cell.interval)] for cell in row.cells if cell]
    if costs.usd is not None:
        scores.append(["Cost", f"${costs.usd:.2f}", ""])
    if costs.minutes is not None:
        scores.append(["Time", f"{costs.minutes:.1f} min", ""])
    if row.entry.attempts is not None:
        scores.append(["Attempts", str(row.entry.attempts), ""])
    scores.append(["Tier", ", ".join([row.entry.status, *row.entry.marks]), ""])
    return {
        "id": row.entry.id,
        "system": row.entry.system,
        "scores": scores,
        "findings": [finding.message for finding in row.findings],
    }


def _sentence(table: BoardTable, one: EntryComparison) -> str:
    headline = label(BOARDS[table.board].headline)
    return (
        f"{one.first.system} and {one.second.system}: {verdict(one)}. {headline} differs by "
        f"{points(one.difference.estimate)} points, 95 % interval {points(one.difference.low)} to "
        f"{points(one.difference.high)}; p {p_text(one.p_value)}, corrected for "
        f"{table.pairs} comparisons {p_text(one.adjusted)}."
    )
