"""Formulas of a sheet: what is one, how a file must spell it, and values computed elsewhere."""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from gta_bench.errors import ToolError

NAMESPACE: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
MAIN: Final = f"{{{NAMESPACE}}}"
ElementTree.register_namespace("", NAMESPACE)
# A text such as "=== Title" or "= 3 apples" is no formula, nor is one that starts a program.
BEGINNING: Final = re.compile(r"=\s*[A-Za-z0-9_$('\"+\-.{\[#\u00c0-\uffff]")
STARTS_PROGRAM: Final = re.compile(r"=\s*[+\-@]?\s*[\w.]+\s*\|")
STRINGS: Final = re.compile(r'"(?:[^"]|"")*"')
# Functions that came after the file format: without the prefix Excel shows #NAME?.
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


class FormulaValue(NamedTuple):
    """A formula's value as a sheet's XML has it."""

    type: str | None
    text: str


def is_formula(text: str) -> bool:
    """Whether a cell's text is meant to be computed."""
    return BEGINNING.match(text) is not None and STARTS_PROGRAM.match(text) is None


def date_format(formula: str) -> str | None:
    """How to show a formula that gives a date; without a format it is a number of days."""
    found = DATE.fullmatch(formula)
    if found is None:
        return None
    return "yyyy-mm-dd hh:mm" if found[1].upper() == "NOW" else "yyyy-mm-dd"


def spelled(formula: str, *, where: str) -> str:
    """The formula as a file holds it; one that is not complete is a ToolError with its cell."""
    bare = STRINGS.sub("", formula)
    if bare.count("(") != bare.count(")") or '"' in bare:
        raise ToolError(f'The formula {formula[:80]!r} in {where} is not complete: ( or " open.')
    pieces = re.split(f"({STRINGS.pattern})", formula)  # every second one is a text
    pieces[::2] = [NEWER.sub(lambda found: f"_xlfn.{found[1].upper()}", p) for p in pieces[::2]]
    return "".join(pieces)


def values(workbook: bytes) -> dict[str, dict[str, FormulaValue]]:
    """The computed value of every formula, by the sheet's part and the cell."""
    return {
        part: {
            cell.get("r", ""): FormulaValue(cell.get("t"), cell.findtext(f"{MAIN}v") or "")
            for cell in _formula_cells(root)
        }
        for part, root in _sheets(workbook).items()
    }


def with_values(workbook: bytes, computed: Mapping[str, Mapping[str, FormulaValue]]) -> bytes:
    """The workbook with values beside its formulas; it stays the same otherwise."""
    changed = {}
    for part, root in _sheets(workbook).items():
        for cell in _formula_cells(root):
            value = computed.get(part, {}).get(cell.get("r", ""))
            # Excel may know what LibreOffice does not: it computes the file when it opens it.
            if value is not None and value.text != UNKNOWN:
                _set(cell, value)
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


def maker(workbook: bytes) -> str:
    """The program that wrote a workbook, such as `LibreOffice 7.4.7.2`."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        about = archive.read("docProps/app.xml").decode("utf-8", "replace")
    found = re.search(r"LibreOffice/([\d.]+)", about)
    return f"LibreOffice {found[1]}" if found else "LibreOffice"


def _set(cell: Element, value: FormulaValue) -> None:
    for old in cell.findall(f"{MAIN}v"):
        cell.remove(old)
    ElementTree.SubElement(cell, f"{MAIN}v").text = value.text
    if value.type in ("str", "b", "e"):
        cell.set("t", value.type)
    else:
        cell.attrib.pop("t", None)


def _sheets(workbook: bytes) -> dict[str, Element]:
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        return {
            name: ElementTree.fromstring(archive.read(name))
            for name in sorted(archive.namelist())
            if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name)
        }


def _formula_cells(root: Element) -> Iterator[Element]:
    return (cell for cell in root.iter(f"{MAIN}c") if cell.find(f"{MAIN}f") is not None)
