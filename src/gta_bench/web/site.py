"""The leaderboard as a folder of static HTML that loads nothing from other servers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gta_bench.errors import format_count
from gta_bench.leaderboard.tables import (
    BOARD_METRICS,
    BOARDS,
    BoardTable,
    build_tables,
    find_careers,
    system_key,
)
from gta_bench.metrics.table import label, metric
from gta_bench.records.leaderboard import Board, Entry
from gta_bench.web.pages import read_asset, read_style, render
from gta_bench.web.site_compare import compare_data, describe_pairs, view_pairs
from gta_bench.web.site_views import (
    BoardPlot,
    anchor,
    name_pages,
    view_card,
    view_changes,
    view_numbers,
    view_plot,
    view_systems,
    view_tiers,
)

PAPER: Final = "https://arxiv.org/abs/2407.08713"
REPOSITORY: Final = "https://github.com/open-compass/GTA"


def build_site(
    entries: Sequence[Entry], folder: Path, *, submit_to: str | None = None
) -> list[Path]:
    """Write every page into the folder and return the written files.

    `submit_to` is the web address of the repository that takes submissions.
    """
    tables = build_tables(entries)
    folder.mkdir(parents=True, exist_ok=True)
    pages = _pages(tables, submit_to) | {
        "style.css": read_style() + read_asset("site.css"),
        "site.js": read_asset("site.js"),
        "data.js": f"const comparisons = {json.dumps(compare_data(tables), sort_keys=True)};\n",
    }
    for name, content in pages.items():
        (folder / name).write_text(content, encoding="utf-8", newline="\n")
    return [folder / name for name in pages]


def _pages(tables: Sequence[BoardTable], submit_to: str | None) -> dict[str, str]:
    by_board = {
        board: own
        for board in BOARDS
        if (own := [table for table in tables if table.board == board])
    }
    names = name_pages(tables)
    plots = {anchor(table): view_plot(table, names) for table in tables}
    common: dict[str, object] = {
        "boards": [BOARDS[board] for board in by_board],
        "tiers": view_tiers(tables),
        "kinds": sorted({row.entry.group for table in tables for row in table.rows} - {""}),
        "summary": _summarize(tables),
        "paper": PAPER,
        "repository": REPOSITORY,
        "submit_to": submit_to,
    }
    pages = {
        "index.html": render(
            "site_index.html", **common, page="index.html", **_front(by_board, plots)
        ),
        "compare.html": render(
            "site_compare.html",
            **common,
            page="compare.html",
            tables=[
                (plots[anchor(table)], table.compared, describe_pairs(table), view_pairs(table))
                for table in tables
            ],
        ),
        "history.html": render(
            "site_history.html",
            **common,
            page="history.html",
            changes=view_changes(tables),
            careers=[
                (BOARDS[board].title, label(BOARDS[board].headline), several)
                for board, own in by_board.items()
                if (several := find_careers(own))
            ],
            pages=names,
        ),
    }
    for board, own in by_board.items():
        text = BOARDS[board]
        pages[text.page] = render(
            "site_board.html",
            **common,
            page=text.page,
            text=text,
            parts=[(plots[anchor(table)], view_numbers(table, names)) for table in own],
            meanings=[
                (label(name), metric(name).meaning)
                for name in BOARD_METRICS
                if any(name in table.metrics for table in own)
            ],
        )
    for view in view_systems(tables, names):
        pages[view.page] = render("site_system.html", **common, page=view.page, system=view)
    return pages


def _front(
    by_board: dict[Board, list[BoardTable]], plots: dict[str, BoardPlot]
) -> dict[str, object]:
    """Return what only the front page shows."""
    tables = [table for own in by_board.values() for table in own]
    flagged = [(table, row) for table in tables for row in table.rows if row.findings]
    number = sum(len(table.rows) for table in tables)
    names = name_pages(tables)
    return {
        "cards": [view_card(own[0]) for own in by_board.values()],
        "changes": view_changes(tables)[:4],
        "sections": [
            (BOARDS[board], [plots[anchor(table)] for table in own], len(own) > 1)
            for board, own in by_board.items()
        ],
        "checked": f"{len(flagged)} of {format_count(number, 'row')} have a number that cannot be "
        "right. A finding does not say why.",
        "findings": [
            (row.entry.system, names[system_key(row.entry)], table.release, finding.message)
            for table, row in flagged
            for finding in row.findings
        ],
    }


def _summarize(tables: Sequence[BoardTable]) -> str:
    """Return the newest release and how many results there are."""
    states = [row.entry.status for table in tables for row in table.rows]
    published = [
        row.entry.release
        for table in tables
        for row in table.rows
        if row.entry.status == "published"
    ]
    submitted = len(states) - len(published)
    parts = [f"Latest release {max(published)}"] if published else []
    parts += [f"{format_count(len(published), 'published result')}"] if published else []
    parts += [f"{format_count(submitted, 'submitted result')}"]
    return " · ".join(parts)
