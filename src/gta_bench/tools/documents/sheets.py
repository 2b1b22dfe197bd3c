"""Workbooks: tables as sheets with a header, columns as wide as their content, and formulas."""

import io
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from openpyxl import Workbook
from openpyxl.cell.cell import Cell as SheetCell
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet

from gta_bench.errors import ToolError
from gta_bench.tools.documents.formulas import date_format, is_formula, spelled
from gta_bench.tools.documents.tables import CellValue, DocumentTable

LONGEST_TEXT: Final = 32_767  # what a cell holds
LONGEST_NAME: Final = 31
FORBIDDEN_IN_NAMES: Final = re.compile(r"[\[\]:*?/\\]")
LARGEST_EXACT: Final = 10**15  # a cell keeps 15 digits of a number
NARROWEST, WIDEST = 8, 60
LINE_POINTS: Final = 15.0
MOST_LINES: Final = 27  # a row's height has a limit of 409 points

HEADER_FONT: Final = Font(name="Calibri", size=11, family=2, bold=True)
HEADER_FILL: Final = PatternFill("solid", fgColor="FFE7ECF5")
THIN: Final = Side(style="thin", color="FFBFBFBF")
BORDER: Final = Border(left=THIN, right=THIN, top=THIN, bottom=THIN)


def build_workbook(tables: Sequence[DocumentTable]) -> Workbook:
    """All tables, a sheet each."""
    book = Workbook()
    book.remove(book.worksheets[0])
    names: list[str] = []
    for table in tables:
        names.append(_sheet_name(table.name, names))
        _fill(book.create_sheet(names[-1]), table)
    book.calculation.fullCalcOnLoad = True
    return book


def has_formulas(book: Workbook) -> bool:
    """Whether anything is to be computed."""
    return any(cell.data_type == "f" for sheet in book.worksheets for row in sheet for cell in row)


def saved(book: Workbook) -> bytes:
    """The workbook's bytes."""
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _sheet_name(name: str, taken: Sequence[str]) -> str:
    plain = FORBIDDEN_IN_NAMES.sub("_", name).strip().strip("'")[:LONGEST_NAME] or "Sheet"
    wanted, number = plain, 1
    while wanted.casefold() in (other.casefold() for other in taken):
        number += 1
        mark = f" {number}"
        wanted = plain[: LONGEST_NAME - len(mark)] + mark
    return wanted


def _fill(sheet: Worksheet, table: DocumentTable) -> None:
    widths = [_column_width(column) for column in zip(*table.rows, strict=True)]
    for number, row in enumerate(table.rows, start=1):
        lines = 1
        for column, value in enumerate(row, start=1):
            if value is None:
                continue
            cell = sheet.cell(number, column)
            assert isinstance(cell, SheetCell)
            _write(cell, value, where=f"{sheet.title}!{get_column_letter(column)}{number}")
            lines = max(lines, _lay_out(cell, value, widths[column - 1]))
        if lines > 1:
            sheet.row_dimensions[number].height = LINE_POINTS * min(lines, MOST_LINES)
            for cell in sheet[number]:
                cell.alignment = Alignment(wrap_text=cell.alignment.wrap_text, vertical="top")
    for column, width in enumerate(widths, start=1):
        sheet.column_dimensions[get_column_letter(column)].width = width
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0  # as many pages as it takes, one wide
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    if _has_header(table):
        _mark_header(sheet, len(table.rows[0]))


def _write(cell: SheetCell, value: CellValue, *, where: str) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= LARGEST_EXACT:
        value = str(value)
    if not isinstance(value, str):
        cell.value = value
        return
    if len(value) > LONGEST_TEXT:
        raise ToolError(f"{where} has {len(value)} characters; a cell holds {LONGEST_TEXT}.")
    if is_formula(value):
        cell.value = spelled(value, where=where)
        cell.number_format = date_format(value) or cell.number_format
        return
    cell.value = value
    cell.data_type = "s"  # also where the text looks like a formula or an error
    cell.quotePrefix = value.startswith(("=", "+", "-", "@"))


def _lay_out(cell: SheetCell, value: CellValue, width: float) -> int:
    """Wrap a long text; the lines that it takes then."""
    if not isinstance(value, str) or cell.data_type == "f":
        return 1
    room = width - 2
    lines = sum(max(1, -(-_width(line) // int(room))) for line in value.split("\n"))
    if lines > 1:
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    return lines


def _has_header(table: DocumentTable) -> bool:
    """A first row of words over further rows."""
    first = table.rows[0]
    words = all(isinstance(cell, str) and cell.strip() and not is_formula(cell) for cell in first)
    return words and len(table.rows) > 1


def _mark_header(sheet: Worksheet, columns: int) -> None:
    for column in range(1, columns + 1):
        cell = sheet.cell(1, column)
        cell.font = HEADER_FONT
        cell.fill = HEADER_FILL
        cell.border = BORDER
        cell.alignment = Alignment(vertical="center", wrap_text=True)
    sheet.freeze_panes = "A2"


def _column_width(column: Sequence[CellValue]) -> float:
    return min(WIDEST, max(NARROWEST, 2 + max(_longest_line(cell) for cell in column)))


def _longest_line(cell: CellValue) -> int:
    if cell is None:
        return 0
    if isinstance(cell, float):
        return len(f"{cell:.10g}")
    text = str(cell)
    if isinstance(cell, str) and is_formula(text):
        return 10
    return max(_width(line) for line in text[: WIDEST * 4].split("\n"))


def _width(line: str) -> int:
    """In characters of a sheet's default font; East Asian ones are two wide."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)
