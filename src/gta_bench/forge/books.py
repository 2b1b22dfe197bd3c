"""Workbooks with formulas, their values, and the look of careful work."""

import io
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import xlsxwriter

from gta_bench.forge.files import WHEN, ForgedCell, show


class Formula(NamedTuple):
    """A formula and the value that a program would show for it."""

    text: str
    value: ForgedCell


class ForgedShare(NamedTuple):
    """A part of a whole, shown in percent."""

    value: float


BookCell = ForgedCell | Formula | ForgedShare
AMOUNT: Final = "#,##0.00"


class BookSheet(NamedTuple):
    """A sheet; the first row is its head unless it has none."""

    name: str
    rows: Sequence[Sequence[BookCell]]
    head: bool = True


def write_book(*sheets: BookSheet, title: str = "") -> bytes:
    """Return a workbook with a bold head and total, grouped digits, and columns that fit."""
    data = io.BytesIO()
    book = xlsxwriter.Workbook(data, {"in_memory": True})
    book.set_properties({"title": title, "created": WHEN})
    looks: dict[str, Any] = {}
    for sheet in sheets:
        page = book.add_worksheet(sheet.name)
        widths: dict[int, int] = {}
        for number, row in enumerate(sheet.rows):
            for at, cell in enumerate(row):
                widths[at] = max(widths.get(at, 10), len(_show(cell)) + 3)
                wanted = _choose_look(sheet, number, at)
                name = repr(wanted)
                if name not in looks:
                    looks[name] = book.add_format(wanted)
                _write_cell(page, (number, at), cell, looks[name])
        for at, width in widths.items():
            page.set_column(at, at, min(width, 60))
        if sheet.head:
            page.freeze_panes(1, 0)
    book.close()
    return data.getvalue()


def _show(cell: BookCell) -> str:
    value = cell.value if isinstance(cell, Formula) else cell
    if isinstance(value, ForgedShare):
        return f"{value.value:.1%}"
    return show(value) if isinstance(value, str) else f"{value:,.2f}"


def _choose_look(sheet: BookSheet, number: int, at: int) -> dict[str, object]:
    """Return the format of a cell; the head is aligned as the cells below it."""
    row, is_head = sheet.rows[number], sheet.head and number == 0
    look: dict[str, object] = {}
    if is_head:
        look |= {"bold": True, "bottom": 1, "bg_color": "#DCE6F1"}
    elif isinstance(row[0], str) and row[0].startswith("Total"):
        look |= {"bold": True} | ({"top": 1} if number else {})
    below = sheet.rows[1] if is_head and len(sheet.rows) > 1 else row
    like = below[at] if at < len(below) else ""
    value = like.value if isinstance(like, Formula) else like
    if isinstance(value, str):
        return look | ({"indent": 1} if at else {})
    if is_head:
        return look | {"align": "right"}
    whole = "#,##0" if isinstance(value, int) else AMOUNT
    return look | {"num_format": "0.0%" if isinstance(value, ForgedShare) else whole}


def _write_cell(page: Any, place: tuple[int, int], cell: BookCell, look: Any) -> None:
    match cell:
        case Formula():
            known = cell.value if isinstance(cell.value, str | int) else float(cell.value)
            page.write_formula(*place, cell.text, look, known)
        case ForgedShare():
            page.write_number(*place, cell.value, look)
        case str():
            page.write_string(*place, cell, look)
        case _:
            page.write_number(*place, float(cell), look)
