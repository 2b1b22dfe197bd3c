"""ReadDOCX: a Word document as Markdown."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.docx import read_docx
from gta_bench.content.needs import missing_pandoc, versions
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, FilePath, Made, Tool, ToolInput
from gta_bench.tools.operation.reading import as_result, availability


class ReadDOCXInput(ToolInput):
    """A Word document."""

    file: FilePath = Field(description="The input DOCX file.")


class ReadDOCX(Tool[ReadDOCXInput]):
    """Headings, lists, tables, formulas and notes; upstream gives the paragraphs alone."""

    name = "ReadDOCX"
    category = "operation"
    description = "This tool reads a DOCX file and returns its text content."
    version = "1"
    input_type = ReadDOCXInput
    outputs = (Parameter(type="text", description="Extracted text content from the DOCX file."),)

    def check(self) -> Availability:
        return availability(self.equipment, missing_pandoc(), _backend())

    async def apply(self, workspace: Workspace, given: ReadDOCXInput) -> Made:
        jail = self.equipment.need_jail()
        data = await self.equipment.in_thread(workspace.read, given.file)
        content = await read_docx(data, jail)
        return as_result(content.as_text(), _backend(), jail)


def _backend() -> str:
    return versions("pypandoc-binary")
