"""Tables of text, for the terminal and as Markdown."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from gta_bench.records.statistics import Interval
from gta_bench.records.visible import show_hidden

LONGEST = 160
LONGEST_REMARK: Final = 1_000
# What begins something in Markdown other than text; tables escape `|`.
_MARKUP: Final = re.compile(r"([\\`*\[\]<>&~])")


def line(text: str, most: int = LONGEST) -> str:
    """Return the text in one line, cut to `most` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}…"


def short(text: str, most: int) -> str:
    """Return the text, cut to `most` characters with a note of how many follow."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… ({left:,} more characters)"


class Table(NamedTuple):
    """A heading and rows of text.

    >>> markdown(Table(("metric", "value"), (("AnsAcc", "52.10"),))).splitlines()[0]
    '| metric | value |'
    """

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def markdown(table: Table) -> str:
    """Return the table as Markdown."""
    rule = "|".join("---" for _ in table.heading)
    lines = [_row(table.heading), f"|{rule}|", *(_row(row) for row in table.rows)]
    return "\n".join(lines)


def escape_markdown(text: str, most: int = LONGEST_REMARK) -> str:
    """Return a text in one line, which Markdown shows as it is, mentions nobody and links nowhere.

    >>> escape_markdown("ask @me <now>")
    'ask @<!-- -->me \\\\<now\\\\>'
    """
    shown = _MARKUP.sub(r"\\\1", line(show_hidden(text), most))
    return shown.replace("@", "@<!-- -->").replace("://", ":<!-- -->//")


def format_number(value: float | int | None) -> str:
    """Format a number with two decimals, or a dash if there was nothing to measure."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def with_interval(one: Interval | None, *, factor: float = 1.0) -> str:
    """Format an estimate with its interval, or a dash if there was nothing to measure."""
    if one is None:
        return "-"
    value, low, high = (factor * number for number in (one.estimate, one.low, one.high))
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def dollars(value: float | None) -> str:
    """Format an amount of money with four decimals, or a dash if it is unknown."""
    return "-" if value is None else f"${value:,.4f}"


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
