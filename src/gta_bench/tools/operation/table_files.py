"""CsvFileGenerator and XlsxFileGenerator: tables as a CSV file or a workbook with values."""

import csv
import io
import logging
import re
from typing import Final

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.libreoffice import convert, missing_office
from gta_bench.content.needs import missing_modules
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import (
    Availability,
    Available,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    file_part,
)
from gta_bench.tools.documents.tables import CellValue, DocumentTable, read_tables
from gta_bench.tools.operation.shared import FileName, JsonText, OutputDir
from gta_bench.tools.packages import name_and_version

CSV_BACKEND: Final = "csv"
# Spreadsheet programs read a text that begins like this as a formula, which can start programs.
# A quote before it makes it text. Numbers stay unchanged, and so does a lone sign ("nothing").
FORMULA: Final = re.compile(r"[=+\-@\t]")
NUMBER: Final = re.compile(r"[+-]?\s?[$€£¥]?\s?\d[\d\s.,:/-]*(?:[eE][+-]?\d+)?\s?[%‰]?|[+-]+")
logger = logging.getLogger(__name__)
NAME: Final = "made.xlsx"


class CsvInput(ToolInput):
    """Upstream's arguments."""

    filename: str = Field(
        description="The base name of the CSV file to generate (without extension). For example, "
        "`report` will create `report.csv`."
    )
    data_str: JsonText = Field(
        description="A JSON-formatted string representing a 2D array (list of rows). Each row must "
        'be a JSON array of cell values. Example: [["col1","col2"],["a",1],["b",2]]. A list of '
        "objects with the columns as keys is accepted as well."
    )
    output_dir: OutputDir = None


class CsvFileGenerator(Tool[CsvInput]):
    """UTF-8 with a byte order mark, without which Excel shows Chinese as other characters."""

    name = "CsvFileGenerator"
    category = "operation"
    description = (
        "Generates a CSV file from structured tabular data. The `data_str` input must be a valid "
        "JSON string encoding a 2D array (list of rows), where each row is a list of cell values. "
        'Example with header row: [["name","age"],["Alice",30],["Bob",25]].'
    )
    version = "1"
    input_type = CsvInput
    outputs = (Parameter(type="file", description="The generated CSV file.", filetype="csv"),)

    def check(self) -> Availability:
        return Available(CSV_BACKEND)

    async def apply(self, workspace: Workspace, given: CsvInput) -> Made:
        data = await self.equipment.in_thread(
            lambda: _encode_table(read_tables(given.data_str, several=False)[0])
        )
        output = workspace.write(given.filename, data, suffix=".csv")
        return Made((file_part("file", output),), backend=CSV_BACKEND)


def _encode_table(table: DocumentTable) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerows([_format_cell(cell) for cell in row] for row in table.rows)
    return stream.getvalue().encode("utf-8-sig")


def _format_cell(cell: CellValue) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return str(cell)
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell


class XlsxInput(ToolInput):
    """Upstream's arguments."""

    filename: FileName = Field(
        description="The base name of the XLSX file to generate (without extension)."
    )
    data_str: JsonText = Field(
        description="A JSON-formatted string representing a list of lists, the rows. A list of "
        'objects, or an object {"sheet name": rows, ...} for several sheets is accepted as well. '
        "A text that begins with = is a formula."
    )
    output_dir: OutputDir = None


class XlsxFileGenerator(Tool[XlsxInput]):
    """openpyxl writes the file; LibreOffice computes the formulas if it is installed.

    Without LibreOffice, or if it fails, the formulas have no values until a spreadsheet program
    opens the file. The backend of the result then only names openpyxl.
    """

    name = "XlsxFileGenerator"
    category = "operation"
    description = "Generates an XLSX file with the provided data."
    version = "1"
    input_type = XlsxInput
    outputs = (Parameter(type="file", description="The generated XLSX file.", filetype="xlsx"),)

    def check(self) -> Availability:
        missing = missing_modules("openpyxl")
        if missing is not None:
            return Unavailable(missing.reason, missing.fix)
        computes = "" if missing_office(self.equipment.jail) else ", LibreOffice"
        return Available(name_and_version("openpyxl") + computes)

    async def apply(self, workspace: Workspace, given: XlsxInput) -> Made:
        tables = await self.equipment.in_thread(read_tables, given.data_str, several=True)
        data, computed_by = await self._build(tables)
        output = workspace.write(given.filename, data, suffix=".xlsx")
        backend = ", ".join(filter(None, (name_and_version("openpyxl"), computed_by)))
        jail = self.equipment.jail.kind if computed_by and self.equipment.jail else None
        return Made((file_part("file", output),), backend=backend, jail=jail)

    async def _build(self, tables: tuple[DocumentTable, ...]) -> tuple[bytes, str | None]:
        """Return the workbook, and the program that computed its formulas."""
        from gta_bench.tools.documents import sheets

        in_thread = self.equipment.in_thread
        book = await in_thread(sheets.build_workbook, tables)
        data = await in_thread(sheets.save_workbook, book)
        if missing_office(self.equipment.jail) or not sheets.has_formulas(book):
            return data, None
        try:
            computed = await convert(self.equipment.need_jail(), NAME, data, to="xlsx")
        except ToolError as exc:  # the file is complete, and a spreadsheet program computes it
            logger.debug("formulas stay without values: %s", exc)
            return data, None
        complete = await in_thread(lambda: sheets.add_values(data, sheets.read_values(computed)))
        return complete, sheets.read_creator(computed)
