"""ReadXLSX: every sheet of an Excel workbook as CSV, with its formulas."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.needs import missing_modules, versions
from gta_bench.content.xlsx import DRIVER, read_xlsx
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, FilePath, Made, Tool, ToolInput
from gta_bench.tools.operation.reading import as_result, availability


class ReadXLSXInput(ToolInput):
    """An Excel workbook."""

    file: FilePath = Field(description="The input XLSX file.")


class ReadXLSX(Tool[ReadXLSXInput]):
    """All sheets, values and formulas; upstream gives the first sheet's values."""

    name = "ReadXLSX"
    category = "operation"
    description = "This tool reads an XLSX file and returns its content as CSV-formatted text."
    version = "1"
    input_type = ReadXLSXInput
    outputs = (Parameter(type="text", description="Extracted XLSX content as CSV text."),)

    def check(self) -> Availability:
        return availability(self.equipment, missing_modules(*DRIVER.modules), _backend())

    async def apply(self, workspace: Workspace, given: ReadXLSXInput) -> Made:
        jail = self.equipment.need_jail()
        data = await self.equipment.in_thread(workspace.read, given.file)
        content = await read_xlsx(data, jail)
        return as_result(content.as_text(), _backend(), jail)


def _backend() -> str:
    return versions("openpyxl")
