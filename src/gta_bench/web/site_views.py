"""What the pages of the leaderboard's site show, computed from its tables; templates fill it in."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from gta_bench.errors import format_count
from gta_bench.leaderboard.tables import (
    BOARDS,
    NESTED,
    BoardTable,
    Row,
    ScoreCell,
    system_key,
)
from gta_bench.metrics.table import label, metric
from gta_bench.records.leaderboard import Entry, Tier
from gta_bench.records.statistics import Interval
from gta_bench.similarity.catalog import PUBLISHED
from gta_bench.web.components import (
    Badge,
    Figure,
    IntervalPlot,
    PlotPoint,
    PlotRow,
    PlotTick,
    plot_intervals,
)
from gta_bench.web.pages import DASH

# Axes end at a multiple of this.
STEP: Final = 10
# Why a row is not ranked.
SIMILAR: Final = "other similarity"
# How many neighbors above and below a system its page shows.
AROUND: Final = 2
TIERS: Final[Mapping[Tier, str]] = {
    "published": "A number from the authors; it was not run again here.",
    "self-reported": (
        "Stated by its authors. Of a submitted bundle, the scores follow from its logs; of an "
        "entry alone, only its numbers were checked."
    ),
    "re-judged": "A random sample of its leaves was judged again with the same result.",
    "reproduced": "A random sample of its tasks was run again with the same result.",
}
SCORINGS: Final = {
    "compat": "compat, the rules of the published evaluator",
    "strict": "strict, the corrected rules",
}


class TierKey(NamedTuple):
    """A tier in the legend, with the number of its rows on the site."""

    tier: Tier
    about: str
    number: int


class BoardRow(NamedTuple):
    """A system in a plot; `note` says how it differs from published rows."""

    entry: Entry
    place: PlotRow
    href: str
    note: str
    spent: str
    flagged: bool
    current: bool = False


class TieGroup(NamedTuple):
    """Systems that cannot be told apart, between two places of the table."""

    title: str
    places: str
    first: bool
    rows: tuple[BoardRow, ...]


class BoardPlot(NamedTuple):
    """The plot of a table, with a sentence on what it shows."""

    anchor: str
    title: str
    page: str
    release: str
    metric: str
    systems: str
    shown: str
    finding: str
    groups: tuple[TieGroup, ...]
    ticks: tuple[PlotTick, ...]
    notes: tuple[str, ...]


class BoardCard(NamedTuple):
    """The finding of a board's newest table."""

    title: str
    page: str
    number: str
    unit: str
    about: str
    href: str


class SiteChange(NamedTuple):
    """What a month brought to the site."""

    month: str
    texts: tuple[str, ...]


class NumberCell(NamedTuple):
    """A cell of a table of numbers; an empty `value` is sorted last."""

    name: str
    text: str
    small: str
    value: str


class NumberRow(NamedTuple):
    """All numbers of an entry."""

    entry: Entry
    href: str
    group: int
    head: str
    place: int
    ranks: str
    cells: tuple[NumberCell, ...]
    note: str
    findings: tuple[str, ...]
    compare: str


class NumberTable(NamedTuple):
    """All numbers of a table, with its columns as label, meaning and whether it has a star."""

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    rows: tuple[NumberRow, ...]
    starred: bool
    sources: tuple[str, ...]

    @property
    def width(self) -> int:
        """The number of columns: place, system, numbers."""
        return len(self.columns) + 2


class SystemEntry(NamedTuple):
    """A system in one table: its figures, neighbors, numbers and facts."""

    anchor: str
    title: str
    board: str
    page: str
    release: str
    badges: tuple[Badge, ...]
    figures: tuple[Figure, ...]
    plot: BoardPlot
    numbers: tuple[NumberCell, ...]
    unknown: str
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    findings: tuple[str, ...]
    compare: str
    compared: str


class SystemView(NamedTuple):
    """A system with its rows in all boards, newest first."""

    page: str
    name: str
    about: str
    entries: tuple[SystemEntry, ...]


def name_pages(tables: Sequence[BoardTable]) -> dict[str, str]:
    """Return the page of each system; names that differ only in signs share one."""
    pages: dict[str, str] = {}
    for table in tables:
        for row in table.rows:
            key = system_key(row.entry)
            if key not in pages:
                slug = re.sub(r"[^a-z0-9]+", "-", row.entry.system.lower()).strip("-")[:80]
                page = f"system-{slug}.html"
                if not slug or page in pages.values():
                    # A name without Latin letters, or one that differs only in others.
                    page = f"system-{slug}-{sha256(key.encode()).hexdigest()[:8]}.html"
                pages[key] = page
    return pages


def view_plot(table: BoardTable, pages: Mapping[str, str]) -> BoardPlot:
    """Return a table as a plot of all of its systems."""
    return _plot(table, table.rows, pages)


def _plot(
    table: BoardTable, rows: Sequence[Row], pages: Mapping[str, str], current: str = ""
) -> BoardPlot:
    text, headline = BOARDS[table.board], label(BOARDS[table.board].headline)
    plotted = place_rows(table, rows)
    shown = {
        row.entry.id: BoardRow(
            row.entry,
            place,
            pages[system_key(row.entry)],
            _note(row.entry),
            _spent(row.entry),
            bool(row.findings),
            row.entry.id == current,
        )
        for row, place in zip(rows, plotted.rows, strict=True)
    }
    return BoardPlot(
        anchor(table),
        text.title,
        text.page,
        table.release,
        headline,
        format_count(len(table.rows), "system"),
        f"{len(rows)} of {format_count(len(table.rows), 'system')}",
        find_sentence(table),
        tuple(_groups(table, shown)),
        plotted.ticks,
        tuple(_table_notes(table)),
    )


def place_rows(table: BoardTable, rows: Sequence[Row]) -> IntervalPlot:
    """Place rows on the axis of their whole table."""
    points = []
    for row in table.rows:
        interval = row.headline.interval
        assert interval is not None  # tables refuse entries without one
        ends = (100 * interval.low, 100 * interval.high)
        small = f"{ends[0]:.1f}\N{EN DASH}{ends[1]:.1f}"
        points.append(
            PlotPoint(row.entry.system, row.headline.value, *ends, row.headline.text, small)
        )
    highest = max(point.high for point in points)
    plotted = plot_intervals(points, end=min(100, STEP * math.ceil(highest / STEP)))
    wanted = {row.entry.id for row in rows}
    kept = [
        place for row, place in zip(table.rows, plotted.rows, strict=True) if row.entry.id in wanted
    ]
    return plotted._replace(rows=tuple(kept))


def _groups(table: BoardTable, shown: Mapping[str, BoardRow]) -> Iterator[TieGroup]:
    """Yield the groups that have rows to show."""
    before = 0
    for number, members in enumerate(table.groups(), start=1):
        low, before = before + 1, before + len(members)
        rows = tuple(shown[one.entry.id] for one in members if one.entry.id in shown)
        if rows:
            tied = f"{len(members)} tied" if len(members) > 1 else "1 system"
            places = f"places {low} to {before}" if len(members) > 1 else f"place {low}"
            yield TieGroup(f"Group {number}: {tied}", places, number == 1, rows)
    apart = tuple(shown[one.entry.id] for one in table.unranked if one.entry.id in shown)
    if apart:
        yield TieGroup(f"Not ranked: {format_count(len(apart), 'system')}", SIMILAR, False, apart)


def find_sentence(table: BoardTable) -> str:
    """Say how many systems share the first place."""
    best, others = table.group(1), len(table.ranked)
    if not best:
        return "No system is ranked."
    if len(best) > 1:
        number = "All" if len(best) == others else f"The first {len(best)} of"
        return f"{number} {format_count(others, 'system')} cannot be told apart."
    if others > 1:
        return f"{best[0].entry.system} differs significantly from the other {others - 1}."
    return "Only one system."


def _note(entry: Entry) -> str:
    """Return what a submitted row must say; what published rows share stands in the legend."""
    if entry.status == "published":
        return ""
    return " · ".join([entry.status, entry.release, f"{entry.scoring} scoring", *entry.marks])


def _spent(entry: Entry) -> str:
    costs = entry.costs
    amounts = [
        *([f"${costs.usd:,.2f}"] if costs.usd is not None else []),
        *([f"{costs.minutes:,.1f} min"] if costs.minutes is not None else []),
    ]
    return " · ".join(amounts)


def _table_notes(table: BoardTable) -> Iterator[str]:
    """Yield what a reader must know to compare the rows."""
    entries = [row.entry for row in table.rows]
    if len({one.scoring for one in entries}) > 1:
        yield (
            "Submitted rows are scored by the strict rules, published rows by those of the "
            "published evaluator."
        )
    if table.unranked:
        yield (
            f"Rows with the mark 'other similarity' are not ranked: they compare texts by another "
            f"model than the published {PUBLISHED}, and {label(BOARDS[table.board].headline)} "
            "depends on it."
        )
    yield from dict.fromkeys(
        f"{note[0].upper()}{note[1:]}."
        for one in entries
        if one.status == "published"
        for note in one.notes
        if note
    )


def anchor(table: BoardTable) -> str:
    """Return the place of a table on the page of its board."""
    return f"{table.board}-{table.release}"


def view_card(table: BoardTable) -> BoardCard:
    """Return the finding of a table in a number and a sentence."""
    text, rows = BOARDS[table.board], table.ranked or table.rows
    best = rows[0]
    name = " and ".join(
        one.entry.system if one.entry.status == "published" else _name_submitted(one.entry)
        for one in rows
        if one.headline.value == best.headline.value
    )
    score = best.entry.scores[text.headline]
    number, unit = f"{best.headline.value:.1f} %", label(text.headline)
    if score.k is not None and score.n is not None:
        number, unit = str(score.k), f"of {format_count(score.n, 'task')}"
    about = f"is the highest {label(text.headline)} in {table.release} ({name})."
    return BoardCard(
        text.title, text.page, number, unit, f"{about} {find_sentence(table)}", f"#{anchor(table)}"
    )


def _name_submitted(entry: Entry) -> str:
    return f"{entry.system}, {entry.status}"


def view_tiers(tables: Sequence[BoardTable]) -> tuple[TierKey, ...]:
    """Return all tiers with the number of their rows."""
    found = [row.entry.status for table in tables for row in table.rows]
    return tuple(TierKey(tier, about, found.count(tier)) for tier, about in TIERS.items())


def view_changes(tables: Sequence[BoardTable]) -> tuple[SiteChange, ...]:
    """Return what each month brought, newest first."""
    months: dict[str, list[str]] = {}
    known: set[tuple[str, str, float]] = set()
    for table in sorted(tables, key=lambda table: table.release):
        title, headline = BOARDS[table.board].title, label(BOARDS[table.board].headline)
        published = [row for row in table.rows if row.entry.status == "published"]
        facts = {(table.board, system_key(row.entry), row.headline.value) for row in published}
        if published:
            best = published[0]
            again = ", all printed before" if facts <= known else ""
            months.setdefault(table.release, []).append(
                f"{title}: {format_count(len(published), 'system')} published{again}. Highest "
                f"{headline}: {best.entry.system}, {best.headline.text}."
            )
        known |= facts
        for row in table.rows:
            if row.entry.status != "published":
                months.setdefault(row.entry.release, []).append(
                    f"{title}: {row.entry.system} joins the plot of {table.release}, "
                    f"{row.entry.status}, with {headline} {row.headline.text}"
                    f"{', not ranked' if row.standing is None else ''}."
                )
    return tuple(SiteChange(month, tuple(months[month])) for month in sorted(months)[::-1])


def view_numbers(table: BoardTable, pages: Mapping[str, str]) -> NumberTable:
    """Return all numbers of a table."""
    columns = [
        (label(name), metric(name).meaning, name in NESTED)
        for name in (BOARDS[table.board].headline, *_others(table))
    ]
    if any(row.entry.costs.usd is not None for row in table.rows):
        columns += [
            ("Cost", "US dollars of the whole run", False),
            ("Score per $", "Root score divided by the cost", False),
            ("Minutes", "Duration of the whole run", False),
        ]
    names = [name for name, _, _ in columns]
    groups = [*table.groups(), *([table.unranked] if table.unranked else [])]
    placed = [(number, one, row) for number, one in enumerate(groups, start=1) for row in one]
    rows = []
    for place, (number, members, row) in enumerate(placed, start=1):
        first = members[0].entry.id == row.entry.id
        cells = {cell.name: cell for cell in view_cells(row)}
        rows.append(
            NumberRow(
                row.entry,
                pages[system_key(row.entry)],
                number,
                _head(members) if first else "",
                place,
                _ranks(row),
                tuple(cells.get(name, NumberCell(name, DASH, "", "")) for name in names),
                _note(row.entry),
                tuple(finding.message for finding in row.findings),
                _compare_link(table, row),
            )
        )
    return NumberTable(
        f"{BOARDS[table.board].title}, {table.release}",
        tuple(columns),
        tuple(rows),
        any(star for _, _, star in columns),
        tuple(dict.fromkeys(row.entry.source for row in table.rows)),
    )


def _others(table: BoardTable) -> list[str]:
    return [name for name in table.metrics if name != BOARDS[table.board].headline]


def _head(members: Sequence[Row]) -> str:
    standing, first = members[0].standing, members[0].entry.system
    if standing is None:
        return f"Not ranked, {SIMILAR}: {format_count(len(members), 'system')}"
    number = standing.group
    if len(members) == 1:
        return f"Group {number}: only {first}"
    return f"Group {number}: {len(members)} systems that cannot be told apart from {first}"


def _ranks(row: Row) -> str:
    """Return the ranks that the data allow, such as `2 to 5`."""
    if row.standing is None:
        return DASH
    rank = row.standing.rank
    return f"{rank.low} to {rank.high}" if rank.low < rank.high else f"{rank.low}"


def view_cells(row: Row) -> Iterator[NumberCell]:
    for cell in row.cells:
        if cell is not None:
            yield _number(cell)
    costs, score = row.entry.costs, row.entry.scores.get("root_score")
    if costs.usd is not None:
        yield NumberCell("Cost", f"${costs.usd:.2f}", "", str(costs.usd))
        if costs.usd and score is not None:
            per = score.value / costs.usd
            yield NumberCell("Score per $", f"{per:.3f}", "", str(per))
    if costs.minutes is not None:
        yield NumberCell("Minutes", f"{costs.minutes:.1f}", "", str(costs.minutes))


def _number(cell: ScoreCell) -> NumberCell:
    return NumberCell(label(cell.metric), cell.text, span_text(cell.interval), str(cell.value))


def _compare_link(table: BoardTable, row: Row) -> str:
    """Return the address that compares a system with the best, or the best with the second."""
    compared = table.compared
    if len(compared) < 2 or row not in compared:
        return ""
    return f"compare.html#{row.entry.id}+{_find_other(table, row).entry.id}"


def _find_other(table: BoardTable, row: Row) -> Row:
    """Return the best system, or the second if this is the best."""
    rows = table.rows
    return rows[0] if row.entry.id != rows[0].entry.id or len(rows) == 1 else rows[1]


def view_systems(tables: Sequence[BoardTable], pages: Mapping[str, str]) -> tuple[SystemView, ...]:
    """Return the page of each system, with its newest row first."""
    found: dict[str, list[tuple[BoardTable, Row]]] = {}
    for table in sorted(tables, key=lambda table: table.release, reverse=True):
        for row in table.rows:
            found.setdefault(system_key(row.entry), []).append((table, row))
    views = []
    for key, own in found.items():
        boards = dict.fromkeys(BOARDS[table.board].title for table, _ in own)
        about = f"{format_count(len(own), 'result')} on {' and '.join(boards)}."
        name = own[0][1].entry.system
        entries = tuple(_system_entry(table, row, pages) for table, row in own)
        views.append(SystemView(pages[key], name, about, entries))
    return tuple(views)


def _system_entry(table: BoardTable, row: Row, pages: Mapping[str, str]) -> SystemEntry:
    text, entry = BOARDS[table.board], row.entry
    numbers = [_number(cell) for cell in row.cells if cell is not None]
    unknown = [one.name for one in numbers if not one.small]
    return SystemEntry(
        re.sub(r"[^a-z0-9]+", "-", entry.id.lower()).strip("-"),
        f"{text.title}, {table.release}",
        text.title,
        f"{text.page}#{anchor(table)}",
        table.release,
        (Badge(entry.status), *(Badge(mark, "warn") for mark in entry.marks)),
        tuple(_figures(table, row)),
        _plot(table, _neighbors(table, row), pages, entry.id),
        tuple(numbers),
        _explain_unknown(unknown),
        tuple(_facts(entry)),
        entry.notes,
        tuple(finding.message for finding in row.findings),
        _compare_link(table, row),
        _find_other(table, row).entry.system,
    )


def _neighbors(table: BoardTable, row: Row) -> list[Row]:
    """Return the best system, the nearest ones above and below, and the system itself."""
    rows = [*table.ranked]
    if row.standing is None:
        rows = sorted([*rows, row], key=lambda one: -one.headline.value)
    at = rows.index(row)
    low, high = max(0, at - AROUND), at + AROUND + 1
    chosen = {one.entry.id for one in (*rows[: min(1, low)], *rows[low:high])}
    return [one for one in table.rows if one.entry.id in chosen]


def _figures(table: BoardTable, row: Row) -> Iterator[Figure]:
    entry = row.entry
    span = f"95 % interval {span_text(row.headline.interval)}"
    yield Figure(label(BOARDS[table.board].headline), f"{row.headline.text} %", span)
    if row.standing is None:
        yield Figure("Rank", "not ranked", SIMILAR, known=False)
    else:
        yield Figure("Rank", _ranks(row), f"of {len(table.ranked)}, as far as the data tell")
        tied = len(table.group(row.standing.group))
        yield Figure("Group", f"{row.standing.group}", f"{tied} tied" if tied > 1 else "alone")
    costs = entry.costs
    known = costs.usd is not None
    yield Figure("Cost", f"${costs.usd:,.2f}" if known else "not stated", known=known)
    timed = costs.minutes is not None
    yield Figure("Time", f"{costs.minutes:,.1f} min" if timed else "not stated", known=timed)


def _explain_unknown(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f"The interval of {', '.join(names)} is unknown: it needs the results of each task, and "
        "only totals are stated."
    )


def _facts(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "Tier", f"{entry.status}. {TIERS[entry.status]}"
    month = "Release" if entry.status == "published" else "Run in"
    yield month, entry.release
    yield "Source", entry.source
    yield "Scoring", SCORINGS[entry.scoring]
    facts = {
        "Kind": entry.group,
        "Model": entry.model,
        "Harness": entry.harness,
        "Judge": entry.judge,
        "Attempts": None if entry.attempts is None else f"{entry.attempts:,}",
        "Run digest": entry.run_digest,
        "Dataset digest": entry.dataset_digest,
    }
    yield from ((name, value) for name, value in facts.items() if value)


def span_text(interval: Interval | None) -> str:
    """Return an interval in percent, such as `9.4 to 21.4`, or nothing if there is none."""
    if interval is None:
        return ""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"
