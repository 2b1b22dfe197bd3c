"""Workbooks: tables as sheets with a header, fitted columns, and formulas with values."""

import io
import re
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from openpyxl import Workbook
from openpyxl.cell.cell import Cell as SheetCell
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet

from gta_bench.errors import ToolError
from gta_bench.tools.documents.tables import CellValue, DocumentTable

NAMESPACE: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
MAIN: Final = f"{{{NAMESPACE}}}"
ElementTree.register_namespace("", NAMESPACE)
# A text such as "=== Title" or "= 3 apples" is not a formula, nor is one that starts a program.
BEGINNING: Final = re.compile(r"=\s*[A-Za-z0-9_$('\"+\-.{\[#\u00c0-\uffff]")
STARTS_PROGRAM: Final = re.compile(r"=\s*[+\-@]?\s*[\w.]+\s*\|")
STRINGS: Final = re.compile(r'"(?:[^"]|"")*"')
# Functions that are newer than the file format: without the prefix, Excel shows #NAME?.
NEWER: Final = re.compile(
    r"(?<![\w.])(?=[A-Z])(CONCAT|TEXTJOIN|IFS|SWITCH|MAXIFS|MINIFS|XLOOKUP|XMATCH|SEQUENCE|LET|"
    r"STDEV\.[SP]|VAR\.[SP]|RANK\.(?:EQ|AVG)|PERCENTILE\.(?:INC|EXC)|QUARTILE\.(?:INC|EXC)|"
    r"MODE\.SNGL|COVARIANCE\.[SP]|NORM\.(?:DIST|INV|S\.DIST|S\.INV)|T\.(?:TEST|DIST|INV)|"
    r"CHISQ\.TEST|FORECAST\.LINEAR|IFNA|DAYS|NUMBERVALUE|RANDARRAY)(?=\()",
    re.IGNORECASE,
)
UNKNOWN: Final = "#NAME?"
DATE: Final = re.compile(
    r"=\s*(DATE|TODAY|EDATE|EOMONTH|WORKDAY|DATEVALUE|NOW)\([^()]*(?:\([^()]*\)[^()]*)*\)(?:[+-]\d+)?",
    re.IGNORECASE,
)
LONGEST_TEXT: Final = 32_767  # the limit of a cell
LONGEST_NAME: Final = 31
FORBIDDEN_IN_NAMES: Final = re.compile(r"[\[\]:*?/\\]")
LARGEST_EXACT: Final = 10**15  # a cell stores 15 digits of a number
NARROWEST, WIDEST = 8, 60
LINE_POINTS: Final = 15.0
MOST_LINES: Final = 27  # a row is at most 409 points high
HEADER_FONT: Final = Font(name="Calibri", size=11, family=2, bold=True)
HEADER_FILL: Final = PatternFill("solid", fgColor="FFE7ECF5")
THIN: Final = Side(style="thin", color="FFBFBFBF")
BORDER: Final = Border(left=THIN, right=THIN, top=THIN, bottom=THIN)


class FormulaValue(NamedTuple):
    """The value of a formula, as in the XML of the sheet."""

    type: str | None
    text: str


def is_formula(text: str) -> bool:
    """Whether the text of a cell is a formula."""
    return BEGINNING.match(text) is not None and STARTS_PROGRAM.match(text) is None


def date_format(formula: str) -> str | None:
    """Return the number format for a formula that returns a date; None for other formulas."""
    found = DATE.fullmatch(formula)
    if found is None:
        return None
    return "yyyy-mm-dd hh:mm" if found[1].upper() == "NOW" else "yyyy-mm-dd"


def spell_formula(formula: str, *, where: str) -> str:
    """Return the formula as stored in a file. Raises ToolError if it is not complete."""
    bare = STRINGS.sub("", formula)
    if bare.count("(") != bare.count(")") or '"' in bare:
        raise ToolError(f'The formula {formula[:80]!r} in {where} has an unclosed ( or ".')
    pieces = re.split(f"({STRINGS.pattern})", formula)  # every second one is a text
    pieces[::2] = [NEWER.sub(lambda found: f"_xlfn.{found[1].upper()}", p) for p in pieces[::2]]
    return "".join(pieces)


def read_values(workbook: bytes) -> dict[str, dict[str, FormulaValue]]:
    """Read the computed value of every formula, by sheet part and cell."""
    return {
        part: {
            cell.get("r", ""): FormulaValue(cell.get("t"), cell.findtext(f"{MAIN}v") or "")
            for cell in _find_formulas(root)
        }
        for part, root in _read_sheets(workbook).items()
    }


def add_values(workbook: bytes, computed: Mapping[str, Mapping[str, FormulaValue]]) -> bytes:
    """Return the workbook with values for its formulas and otherwise unchanged."""
    changed = {}
    for part, root in _read_sheets(workbook).items():
        for cell in _find_formulas(root):
            value = computed.get(part, {}).get(cell.get("r", ""))
            # Excel may know a function that LibreOffice does not, and computes it on opening.
            if value is not None and value.text != UNKNOWN:
                _set_value(cell, value)
        changed[part] = ElementTree.tostring(root, xml_declaration=True, encoding="UTF-8")
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook)) as old,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for info in old.infolist():
            data = changed.get(info.filename) or old.read(info)
            new.writestr(info, data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def read_creator(workbook: bytes) -> str:
    """Return the program that wrote a workbook, such as `LibreOffice 7.4.7.2`."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        about = archive.read("docProps/app.xml").decode("utf-8", "replace")
    found = re.search(r"LibreOffice/([\d.]+)", about)
    return f"LibreOffice {found[1]}" if found else "LibreOffice"


def _set_value(cell: Element, value: FormulaValue) -> None:
    for old in cell.findall(f"{MAIN}v"):
        cell.remove(old)
    ElementTree.SubElement(cell, f"{MAIN}v").text = value.text
    if value.type in ("str", "b", "e"):
        cell.set("t", value.type)
    else:
        cell.attrib.pop("t", None)


def _read_sheets(workbook: bytes) -> dict[str, Element]:
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        return {
            name: ElementTree.fromstring(archive.read(name))
            for name in sorted(archive.namelist())
            if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name)
        }


def _find_formulas(root: Element) -> Iterator[Element]:
    return (cell for cell in root.iter(f"{MAIN}c") if cell.find(f"{MAIN}f") is not None)


def build_workbook(tables: Sequence[DocumentTable]) -> Workbook:
    """Build a workbook with a sheet for each table."""
    book = Workbook()
    book.remove(book.worksheets[0])
    names: list[str] = []
    for table in tables:
        names.append(_choose_name(table.name, names))
        _fill_sheet(book.create_sheet(names[-1]), table)
    book.calculation.fullCalcOnLoad = True
    return book


def has_formulas(book: Workbook) -> bool:
    """Whether the workbook has any formulas."""
    return any(cell.data_type == "f" for sheet in book.worksheets for row in sheet for cell in row)


def save_workbook(book: Workbook) -> bytes:
    """Return the bytes of the workbook."""
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _choose_name(name: str, taken: Sequence[str]) -> str:
    plain = FORBIDDEN_IN_NAMES.sub("_", name).strip().strip("'")[:LONGEST_NAME] or "Sheet"
    wanted, number = plain, 1
    while wanted.casefold() in (other.casefold() for other in taken):
        number += 1
        mark = f" {number}"
        wanted = plain[: LONGEST_NAME - len(mark)] + mark
    return wanted


def _fill_sheet(sheet: Worksheet, table: DocumentTable) -> None:
    widths = [_measure_column(column) for column in zip(*table.rows, strict=True)]
    for number, row in enumerate(table.rows, start=1):
        lines = 1
        for column, value in enumerate(row, start=1):
            if value is None:
                continue
            cell = sheet.cell(number, column)
            assert isinstance(cell, SheetCell)
            _write_cell(cell, value, where=f"{sheet.title}!{get_column_letter(column)}{number}")
            lines = max(lines, _wrap_cell(cell, value, widths[column - 1]))
        if lines > 1:
            sheet.row_dimensions[number].height = LINE_POINTS * min(lines, MOST_LINES)
            for cell in sheet[number]:
                cell.alignment = Alignment(wrap_text=cell.alignment.wrap_text, vertical="top")
    for column, width in enumerate(widths, start=1):
        sheet.column_dimensions[get_column_letter(column)].width = width
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0  # any number of pages, one page wide
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    if _has_header(table):
        _mark_header(sheet, len(table.rows[0]))


def _write_cell(cell: SheetCell, value: CellValue, *, where: str) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= LARGEST_EXACT:
        value = str(value)
    if not isinstance(value, str):
        cell.value = value
        return
    if len(value) > LONGEST_TEXT:
        raise ToolError(
            f"{where} has {len(value)} characters; at most {LONGEST_TEXT} fit into a cell."
        )
    if is_formula(value):
        cell.value = spell_formula(value, where=where)
        cell.number_format = date_format(value) or cell.number_format
        return
    cell.value = value
    cell.data_type = "s"  # even if the text looks like a formula or an error
    cell.quotePrefix = value.startswith(("=", "+", "-", "@"))


def _wrap_cell(cell: SheetCell, value: CellValue, width: float) -> int:
    """Wrap a long text and return its number of lines."""
    if not isinstance(value, str) or cell.data_type == "f":
        return 1
    room = width - 2
    lines = sum(max(1, -(-_measure_line(line) // int(room))) for line in value.split("\n"))
    if lines > 1:
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    return lines


def _has_header(table: DocumentTable) -> bool:
    """Whether the first row contains only text and other rows follow."""
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


def _measure_column(column: Sequence[CellValue]) -> float:
    return min(WIDEST, max(NARROWEST, 2 + max(_measure_cell(cell) for cell in column)))


def _measure_cell(cell: CellValue) -> int:
    if cell is None:
        return 0
    if isinstance(cell, float):
        return len(f"{cell:.10g}")
    text = str(cell)
    if isinstance(cell, str) and is_formula(text):
        return 10
    return max(_measure_line(line) for line in text[: WIDEST * 4].split("\n"))


def _measure_line(line: str) -> int:
    """Return the width in characters; East Asian characters count twice."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)
