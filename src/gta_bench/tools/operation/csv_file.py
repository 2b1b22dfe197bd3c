"""CsvFileGenerator: rows as a CSV file that is safe to open in a spreadsheet program."""

import csv
import io
import re
from typing import Final

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part
from gta_bench.tools.documents.tables import CellValue, DocumentTable, read_tables
from gta_bench.tools.operation.shared import JsonText, OutputDir

BACKEND: Final = "csv"
# Spreadsheet programs read a text that begins like this as a formula, which can start programs.
# A quote before it makes it text. Numbers stay unchanged, and so does a lone sign ("nothing").
FORMULA: Final = re.compile(r"[=+\-@\t]")
NUMBER: Final = re.compile(r"[+-]?\s?[$€£¥]?\s?\d[\d\s.,:/-]*(?:[eE][+-]?\d+)?\s?[%‰]?|[+-]+")


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
        return Available(BACKEND)

    async def apply(self, workspace: Workspace, given: CsvInput) -> Made:
        data = await self.equipment.in_thread(
            lambda: _encode_table(read_tables(given.data_str, several=False)[0])
        )
        output = workspace.write(given.filename, data, suffix=".csv")
        return Made((file_part("file", output),), backend=BACKEND)


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
