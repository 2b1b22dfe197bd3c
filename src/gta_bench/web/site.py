"""The leaderboard as a folder of static HTML that loads nothing from other servers."""

from collections.abc import Sequence
from pathlib import Path

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
from gta_bench.records.leaderboard import Entry
from gta_bench.records.statistics import Interval
from gta_bench.web.pages import read_asset, read_style, render


def build_site(
    entries: Sequence[Entry], folder: Path, *, submit_to: str | None = None
) -> list[Path]:
    """Write every page into the folder and return the written files."""
    tables = build_tables(entries)
    folder.mkdir(parents=True, exist_ok=True)
    pages = _pages(tables) | {"style.css": read_style(), "site.js": read_asset("site.js")}
    for name, content in pages.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in pages]


def _pages(tables: Sequence[BoardTable]) -> dict[str, str]:
    by_board = {
        board: own
        for board in BOARDS
        if (own := [table for table in tables if table.board == board])
    }
    common: dict[str, object] = {
        "tables": tables,
        "rows": [(table, row) for table in tables for row in table.rows],
        "newest": {board: own[0] for board, own in by_board.items()},
        "careers": {board: find_careers(own) for board, own in by_board.items()},
        "data": _compare_data(tables),
        "boards": {board: BOARDS[board] for board in by_board},
        "labels": {name: label(name) for name in BOARD_METRICS},
        "meanings": {name: metric(name).meaning for name in BOARD_METRICS},
        "nested": NESTED,
        "span": span_text,
        "plot": plot_interval,
        "axis": axis_end,
        "verdict": verdict_text,
        "points": points_text,
        "p_text": p_text,
        "anchor": lambda table: f"{table.board}-{table.release}",
    }
    pages = {
        page: render(f"site_{page}", **common, page=page)
        for page in ("index.html", "compare.html", "history.html")
    }
    for board, own in by_board.items():
        text = BOARDS[board]
        values = {**common, "page": text.page, "text": text, "tables": own}
        pages[text.page] = render("site_board.html", **values)
    return pages


def span_text(interval: Interval | None) -> str:
    """Return an interval in percent, such as `9.4 to 21.4`, or nothing if there is none."""
    if interval is None:
        return ""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def axis_end(table: BoardTable) -> int:
    """Return the end of the axis of all intervals of a table, in percent."""
    highest = max(100 * row.headline.interval.high for row in table.rows if row.headline.interval)
    return min(100, 10 * -int(-highest // 10))


def plot_interval(cell: ScoreCell, end: int) -> tuple[float, float, float]:
    """Return low, high and estimate on an axis of 100 units for 0 to `end` percent."""
    assert cell.interval is not None
    low, high = (round(100 * 100 * x / end, 1) for x in (cell.interval.low, cell.interval.high))
    return low, high, round(100 * cell.value / end, 1)


def points_text(value: float) -> str:
    """Return percentage points with a sign."""
    return f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def p_text(value: float) -> str:
    """Return a p-value with three decimals."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def verdict_text(comparison: EntryComparison) -> str:
    """Say whether a difference is significant."""
    return "told apart" if comparison.adjusted < 0.05 else "cannot be told apart"


def _compare_data(tables: Sequence[BoardTable]) -> dict[str, object]:
    """Return the data with which site.js compares two rows."""
    return {
        "entries": [_entry_data(row) for table in tables for row in table.compared],
        "pairs": {
            f"{one.first.id} {one.second.id}": _sentence(table, one)
            for table in tables
            for one in table.comparisons
        },
    }


def _entry_data(row: Row) -> dict[str, object]:
    costs = row.entry.costs
    scores = [
        [label(cell.metric), cell.text, span_text(cell.interval)] for cell in row.cells if cell
    ]
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
    headline, found = label(BOARDS[table.board].headline), one.difference
    gap, low, high = map(points_text, (found.estimate, found.low, found.high))
    return (
        f"{one.first.system} and {one.second.system}: {verdict_text(one)}. {headline} differs by "
        f"{gap} points, 95 % interval {low} to {high}; p {p_text(one.p_value)}, corrected for "
        f"{table.pairs} comparisons {p_text(one.adjusted)}."
    )
