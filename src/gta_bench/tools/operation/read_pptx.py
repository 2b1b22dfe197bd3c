"""ReadPPTX: a PowerPoint deck's texts, tables, charts and notes."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.needs import missing_modules, versions
from gta_bench.content.pptx import DRIVER, read_pptx
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, FilePath, Made, Tool, ToolInput
from gta_bench.tools.operation.reading import as_result, availability


class ReadPPTXInput(ToolInput):
    """A PowerPoint deck."""

    file: FilePath = Field(description="The input PPTX file.")


class ReadPPTX(Tool[ReadPPTXInput]):
    """Every shape; upstream gives neither tables, groups, charts nor notes."""

    name = "ReadPPTX"
    category = "operation"
    description = "This tool reads a PPTX file and returns its text content."
    version = "1"
    input_type = ReadPPTXInput
    outputs = (Parameter(type="text", description="Extracted text from the PPTX file."),)

    def check(self) -> Availability:
        return availability(self.equipment, missing_modules(*DRIVER.modules), _backend())

    async def apply(self, workspace: Workspace, given: ReadPPTXInput) -> Made:
        jail = self.equipment.need_jail()
        data = await self.equipment.in_thread(workspace.read, given.file)
        content = await read_pptx(data, jail)
        return as_result(content.as_text(), _backend(), jail)


def _backend() -> str:
    return versions("python-pptx")
