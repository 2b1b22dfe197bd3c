"""Tables for a page: cells with a small line below, a link or a state."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gta_bench.reports.estimates import Estimate
from gta_bench.reports.tables import Table

DASH: Final = "\N{EN DASH}"


class PageCell(NamedTuple):
    """A text, what stands small below it, where it leads, and whether it is good or bad."""

    text: str
    small: str = ""
    href: str = ""
    state: str = ""


class PageTable(NamedTuple):
    """A table with a name for those who hear it; columns of `words` are flush left.

    A row begins a part of the table where the row's number has a title in `parts`.
    """

    name: str
    heading: tuple[str, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    words: tuple[int, ...] = (0,)
    parts: Mapping[int, str] = {}


def plain(name: str, table: Table, words: Sequence[int] = (0,)) -> PageTable:
    """A table of text as one of cells."""
    rows = tuple(tuple(PageCell(text) for text in row) for row in table.rows)
    return PageTable(name, table.heading, rows, tuple(words))


def estimated(found: Mapping[str, Estimate], metric: str) -> PageCell:
    """A score with its interval below, and what it could be if something is missing."""
    one = found.get(metric)
    if one is None:
        return PageCell(DASH)
    missing = f"; with all that is missing {one.cases}" if one.bounds is not None else ""
    return PageCell(one.text, f"{one.span}{missing}")


def number_cell(value: float | None) -> PageCell:
    """A number with two decimals; a dash where nothing was measured."""
    return PageCell(DASH if value is None else f"{value:.2f}")
