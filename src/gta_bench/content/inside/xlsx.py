"""Inside the jail: the cells of a workbook, streamed sheet by sheet up to a limit."""

import datetime
import json
import mimetypes
import re
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MERGED = re.compile(
    rb"<(?:\w+:)?mergeCell\s[^>]{0,200}?ref=\"([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})\""
)
MOST_MERGED = 5000
HIDING = re.compile(rb"<(?:\w{1,8}:)?(row|col)\s([^<>]{0,600})>")
HIDDEN = re.compile(rb"\shidden=[\"'](?:1|true)[\"']")
PLACE = re.compile(rb"(?:^|\s)(r|min|max)=[\"'](\d{1,7})[\"']")
LARGEST_INTEGER = 10**15
MIDNIGHT = datetime.time()
SECONDS = 15.0  # of CPU time, so that a large sheet is at least read in part
OVER: list[Any] = []
LOCALE = re.compile(r"\[(?:\$([^\]-]{0,20})[^\]]{0,20}|[^\]]{0,40})\]|_.|\*.")
LITERAL = re.compile(r'"([^"]{0,300})"|\\(.)')
DIGITS = re.compile(r"[0#?][0#?.,/ E+-]*")
DATE_PARTS = re.compile(
    r'"([^"]{0,300})"|\\(.)|am/pm|a/p|y{1,4}|m{1,5}|d{1,4}|h{1,2}|s{1,2}|.', re.IGNORECASE
)
DATE_CODES = {
    "yyyy": "%Y", "yyy": "%Y", "yy": "%y", "y": "%y", "mmmmm": "%b", "mmmm": "%B", "mmm": "%b",
    "mm": "%m", "m": "%m", "dddd": "%A", "ddd": "%a", "dd": "%d", "d": "%d", "hh": "%H",
    "h": "%H", "ss": "%S", "s": "%S", "am/pm": "%p", "a/p": "%p",
}  # fmt: skip


def prepare() -> dict[str, Any]:
    """Import openpyxl without numpy, which it does not need and which is slower to import.

    Also stop it from asking for the size of a sheet: it would pad every row to the stated size,
    or search the whole sheet if no size is stated.
    """
    sys.modules["numpy"] = None  # type: ignore[assignment]
    mimetypes.knownfiles.clear()  # openpyxl reads the system's files, which not every jail shows
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

    worksheet: Any = ReadOnlyWorksheet
    worksheet._get_size = lambda sheet: None
    return {}


def finish(names: dict[str, Any]) -> str:
    """Return the workbook as JSON."""
    options = json.loads(Path("options.json").read_text(encoding="utf-8"))
    return json.dumps(read(Path("file"), most_cells=options["most_cells"]))


def read(file: Path, *, most_cells: int) -> dict[str, Any]:
    """Read every sheet: values in one pass over the file, formulas in another."""
    import openpyxl

    with file.open("rb") as one, file.open("rb") as two, zipfile.ZipFile(file) as archive:
        values = openpyxl.load_workbook(one, read_only=True, data_only=True, keep_links=False)
        formulas = openpyxl.load_workbook(two, read_only=True, keep_links=False)
        sheets: list[dict[str, Any]] = []
        left, cut = most_cells, False
        for sheet, calculated in zip(values.worksheets, formulas.worksheets, strict=True):
            cells = list(_read_cells(sheet, calculated, left))
            cut = cells[-1:] == [OVER]
            sheets.append(_build_sheet(sheet, cells[:-1] if cut else cells, archive))
            left -= len(cells)
            if cut:
                break
        stale = bool(values.calculation and values.calculation.fullCalcOnLoad)
        if stale:
            _clear_zeros(sheets)
        return {"sheets": sheets, "cut": cut, "stale": stale}


def _clear_zeros(sheets: list[dict[str, Any]]) -> None:
    """Clear the values if all are 0: XlsxWriter writes 0 and requests a calculation."""
    formulas = [cell for sheet in sheets for cell in sheet["cells"] if cell[4] is not None]
    if all(cell[2:4] == ["0", "number"] for cell in formulas):
        for cell in formulas:
            cell[2:4], cell[5] = ["", "empty"], ""


def _build_sheet(sheet: Any, cells: list[list[Any]], archive: zipfile.ZipFile) -> dict[str, Any]:
    content = archive.read(sheet._worksheet_path)
    rows, columns = _find_hidden(content)
    return {
        "name": sheet.title,
        "hidden": sheet.sheet_state != "visible",
        "rows": max((cell[0] for cell in cells), default=0),
        "columns": max((cell[1] for cell in cells), default=0),
        "cells": cells,
        "merged": _find_merged(content),
        "hidden_rows": rows,
        "hidden_columns": columns,
    }


def _find_merged(content: bytes) -> list[str]:
    """Find merged cells in the XML, because a streamed sheet does not list them."""
    found = MERGED.finditer(content)
    return [match[1].decode() for match, _ in zip(found, range(MOST_MERGED), strict=False)]


def _find_hidden(content: bytes) -> tuple[list[int], list[tuple[int, int]]]:
    """Find hidden rows and ranges of hidden columns, which a streamed sheet does not list."""
    rows, columns = [], []
    for found in HIDING.finditer(content):
        if HIDDEN.search(b" " + found[2]):
            place = {name: int(number) for name, number in PLACE.findall(found[2])}
            if found[1] == b"row" and b"r" in place:
                rows.append(place[b"r"])
            elif b"min" in place and b"max" in place:
                columns.append((place[b"min"], place[b"max"]))
    return rows, columns


def _read_cells(values: Any, formulas: Any, most: int) -> Iterator[list[Any]]:
    """Yield row, column, value, type and formula of each cell that is not empty."""
    count = 0
    for pair in zip(values.iter_rows(), formulas.iter_rows(), strict=True):
        late = time.process_time() > SECONDS
        for value_cell, formula_cell in zip(*pair, strict=True):
            formula = _read_formula(formula_cell)
            if value_cell.value is None and formula is None:
                continue
            if count >= most or late:
                yield OVER
                return
            text, kind = _convert(value_cell.value, value_cell.data_type)
            count += 1
            as_shown = _format_shown(value_cell.value, text, kind, value_cell.number_format)
            yield [formula_cell.row, formula_cell.column, text, kind, formula, as_shown]


def _read_formula(cell: Any) -> str | None:
    if cell.data_type != "f":
        return None
    value = cell.value
    text = value if isinstance(value, str) else getattr(value, "text", None)
    if text is None:  # a what-if table
        return "=TABLE()"
    return text if text.startswith("=") else f"={text}"


def _convert(value: Any, data_type: str) -> tuple[str, str]:
    """Return a value as text, and its type."""
    if value is None:
        return "", "empty"
    if data_type == "e":
        return str(value), "error"
    if isinstance(value, bool):
        return str(value).upper(), "truth"
    if isinstance(value, int | float):
        return _format_number(value), "number"
    if isinstance(value, datetime.datetime):
        whole = value.time() == MIDNIGHT
        return (value.date().isoformat() if whole else value.isoformat(" ")), "date"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat(), "date"
    if isinstance(value, datetime.timedelta):
        return str(value), "date"
    return str(value), "text"


def _format_shown(value: Any, text: str, kind: str, code: str) -> str:
    """Return what the sheet displays, if that is more than the value: dates, and units."""
    if kind not in ("number", "date") or code == "General":
        return ""
    code = LOCALE.sub(lambda found: f'"{found[1]}"' if found[1] else "", code.partition(";")[0])
    if kind == "date":
        return _format_date(value, text, code)
    digits = DIGITS.search(LITERAL.sub(lambda found: "x" * len(found[0]), code))
    if digits is None:
        return ""
    before, after = (
        "".join(a or b for a, b in LITERAL.findall(part))
        for part in (code[: digits.start()], code[digits.end() :])
    )
    return f"{before}{text}{after}" if before + after else ""


def _format_date(value: Any, text: str, code: str) -> str:
    if isinstance(value, datetime.timedelta):
        return ""
    pieces, clock, afternoon = [], False, "am/pm" in code.lower()
    for found in DATE_PARTS.finditer(code):
        part = found[0].lower()
        if found[1] or found[2]:
            pieces.append(found[1] or found[2])
            continue
        minutes = part in ("m", "mm") and (
            clock or code[found.end() :].lower().lstrip(":.").startswith("s")
        )
        clock = part[0] == "h" or (clock and not part[0].isalpha())
        form = "%M" if minutes else DATE_CODES.get(part)
        if form is not None and afternoon:
            form = form.replace("%H", "%I")
        try:
            made = value.strftime(form) if form else found[0]
        except ValueError:  # a year before 1000, which not every system supports
            return ""
        pieces.append(
            made.lstrip("0") or "0" if part in ("d", "m", "h", "s") and not minutes else made
        )
    shown = "".join(pieces).strip()
    return "" if shown == text else f"{shown} [{text}]"


def _format_number(value: float) -> str:
    """Format without loss, as short as possible: Excel does not distinguish 3 and 3.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_INTEGER:
        return str(int(value))
    return repr(value)
