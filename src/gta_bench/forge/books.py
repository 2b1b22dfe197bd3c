"""Workbooks with formulas, their values, and the look of careful work."""

import io
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import xlsxwriter

from gta_bench.forge.files import WHEN, ForgedCell, show


class Formula(NamedTuple):
    """A formula and the value that a program would show for it."""

    text: str
    value: ForgedCell


class BookSheet(NamedTuple):
    """A sheet; the first row is its head unless it has none."""

    name: str
    rows: Sequence[Sequence[ForgedCell | Formula]]
    head: bool = True


def write_book(*sheets: BookSheet, title: str = "") -> bytes:
    """Return a workbook with a bold head, amounts with two decimals, and columns that fit."""
    data = io.BytesIO()
    book = xlsxwriter.Workbook(data, {"in_memory": True})
    book.set_properties({"title": title, "created": WHEN})
    bold = book.add_format({"bold": True, "bottom": 1, "bg_color": "#DCE6F1"})
    amount = book.add_format({"num_format": "#,##0.00"})
    for sheet in sheets:
        page = book.add_worksheet(sheet.name)
        widths: dict[int, int] = {}
        for number, row in enumerate(sheet.rows):
            is_head = sheet.head and number == 0
            for at, cell in enumerate(row):
                value = cell.value if isinstance(cell, Formula) else cell
                widths[at] = max(widths.get(at, 8), len(show(value)) + 2)
                look = bold if is_head else amount if isinstance(value, Decimal | float) else None
                if isinstance(cell, Formula):
                    known = value if isinstance(value, str | int) else float(value)
                    page.write_formula(number, at, cell.text, look, known)
                elif isinstance(value, str):
                    page.write_string(number, at, value, look)
                else:
                    page.write_number(number, at, float(value), look)
        for at, width in widths.items():
            page.set_column(at, at, min(width, 60))
        if sheet.head:
            page.freeze_panes(1, 0)
    book.close()
    return data.getvalue()
