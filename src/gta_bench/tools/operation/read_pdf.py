"""ReadPDF: the text and tables of a PDF file, page by page."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.needs import missing_modules, versions
from gta_bench.content.pdf import READ, Ocr, read_pdf
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.local import check_text, read_text
from gta_bench.tools.contract import (
    Availability,
    FilePath,
    Made,
    Tool,
    ToolInput,
    Unavailable,
)
from gta_bench.tools.operation.reading import as_result, availability


class ReadPDFInput(ToolInput):
    """A PDF file."""

    file: FilePath = Field(description="The input PDF file.")


class ReadPDF(Tool[ReadPDFInput]):
    """Text and tables; pages without text are read by the OCR engine where it is installed."""

    name = "ReadPDF"
    category = "operation"
    description = "This tool reads a PDF file and returns its text content."
    version = "1"
    input_type = ReadPDFInput
    outputs = (Parameter(type="text", description="Extracted text from the PDF file."),)

    def check(self) -> Availability:
        return availability(self.equipment, missing_modules(*READ.modules), _backend())

    async def apply(self, workspace: Workspace, given: ReadPDFInput) -> Made:
        jail = self.equipment.need_jail()
        data = await self.equipment.in_thread(workspace.read, given.file)
        content = await read_pdf(data, jail, ocr=page_reader())
        return as_result(content.as_text(), _backend(), jail)


def page_reader() -> Ocr | None:
    """The engine of the OCR tool, for pages that are pictures."""
    if isinstance(check_text(), Unavailable):
        return None

    async def recognize(png: bytes) -> str:
        return "\n".join(line.text for line in await read_text(png, "the page"))

    return recognize


def _backend() -> str:
    return versions("pypdf", "pdfplumber", "pypdfium2")
