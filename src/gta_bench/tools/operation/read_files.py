"""ReadCSV, ReadDOCX, ReadPDF, ReadPPTX and ReadXLSX: the text of a file."""

from abc import abstractmethod
from typing import ClassVar, TypeVar

from pydantic import Field

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import Workspace
from gta_bench.content import pdf, pptx, xlsx
from gta_bench.content.docx import read_docx
from gta_bench.content.needs import Missing, describe_versions, missing_modules, missing_pandoc
from gta_bench.content.tables import read_csv
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.local import check_text, read_text
from gta_bench.tools.contract import (
    Availability,
    Available,
    FilePath,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    text,
)
from gta_bench.tools.operation.shared import check_jailed

MOST_CHARACTERS = 100_000
CSV_BACKEND = "python csv"


def limit_length(content: str) -> str:
    """Return the text, or its beginning and a note of how much was cut."""
    if len(content) <= MOST_CHARACTERS:
        return content
    cut = len(content) - MOST_CHARACTERS
    note = f"[Cut here: {cut} more characters, of {len(content)} in all.]"
    return f"{content[:MOST_CHARACTERS]}\n{note}"


class ReadCSVInput(ToolInput):
    """A CSV file."""

    csv_file: FilePath = Field(description="The input CSV file.")


class ReadCSV(Tool[ReadCSVInput]):
    """Returns the cells unchanged; upstream guesses types, so that `007` becomes 7."""

    name = "ReadCSV"
    category = "operation"
    description = "This tool reads a CSV file and returns its content as a CSV string."
    version = "1"
    input_type = ReadCSVInput
    outputs = (Parameter(type="text", description="CSV content as a string."),)

    def check(self) -> Availability:
        return Available(CSV_BACKEND)

    async def apply(self, workspace: Workspace, given: ReadCSVInput) -> Made:
        data = await self.equipment.in_thread(workspace.read, given.csv_file)
        content = await self.equipment.in_thread(lambda: read_csv(data).as_text())
        return Made((text(limit_length(content)),), CSV_BACKEND)


class FileInput(ToolInput):
    """A file to read."""

    file: FilePath


AnyFile = TypeVar("AnyFile", bound=FileInput)


class JailedReader(Tool[AnyFile]):
    """A tool that reads `file` in the jail; `packages` are what it reads with."""

    category = "operation"
    version = "1"
    packages: ClassVar[tuple[str, ...]]
    modules: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    async def read(self, data: bytes, jail: Jail) -> str:
        """Return the text of a file."""

    def missing(self) -> Missing | None:
        """Return what is not installed."""
        return missing_modules(*self.modules)

    def check(self) -> Availability:
        return check_jailed(
            self.equipment, self.missing(), lambda: describe_versions(*self.packages)
        )

    async def apply(self, workspace: Workspace, given: AnyFile) -> Made:
        jail = self.equipment.need_jail()
        data = await self.equipment.in_thread(workspace.read, given.file)
        content = await self.read(data, jail)
        return Made((text(limit_length(content)),), describe_versions(*self.packages), jail.kind)


class ReadDOCXInput(FileInput):
    """A Word document."""

    file: FilePath = Field(description="The input DOCX file.")


class ReadDOCX(JailedReader[ReadDOCXInput]):
    """Returns headings, lists, tables, formulas and notes; upstream only returns paragraphs."""

    name = "ReadDOCX"
    description = "This tool reads a DOCX file and returns its text content."
    input_type = ReadDOCXInput
    outputs = (Parameter(type="text", description="Extracted text content from the DOCX file."),)
    packages = ("pypandoc-binary",)

    def missing(self) -> Missing | None:
        return missing_pandoc()

    async def read(self, data: bytes, jail: Jail) -> str:
        return (await read_docx(data, jail)).as_text()


class ReadPDFInput(FileInput):
    """A PDF file."""

    file: FilePath = Field(description="The input PDF file.")


class ReadPDF(JailedReader[ReadPDFInput]):
    """Returns text and tables; pages without text go to the OCR engine if it is installed."""

    name = "ReadPDF"
    description = "This tool reads a PDF file and returns its text content."
    input_type = ReadPDFInput
    outputs = (Parameter(type="text", description="Extracted text from the PDF file."),)
    packages = ("pypdf", "pdfplumber", "pypdfium2")
    modules = pdf.READ.modules

    async def read(self, data: bytes, jail: Jail) -> str:
        ocr = None if isinstance(check_text(), Unavailable) else _recognize
        return (await pdf.read_pdf(data, jail, ocr=ocr)).as_text()


async def _recognize(png: bytes) -> str:
    return "\n".join(line.text for line in await read_text(png, "the page"))


class ReadPPTXInput(FileInput):
    """A PowerPoint deck."""

    file: FilePath = Field(description="The input PPTX file.")


class ReadPPTX(JailedReader[ReadPPTXInput]):
    """Returns every shape; upstream omits tables, groups, charts and notes."""

    name = "ReadPPTX"
    description = "This tool reads a PPTX file and returns its text content."
    input_type = ReadPPTXInput
    outputs = (Parameter(type="text", description="Extracted text from the PPTX file."),)
    packages = ("python-pptx",)
    modules = pptx.DRIVER.modules

    async def read(self, data: bytes, jail: Jail) -> str:
        return (await pptx.read_pptx(data, jail)).as_text()


class ReadXLSXInput(FileInput):
    """An Excel workbook."""

    file: FilePath = Field(description="The input XLSX file.")


class ReadXLSX(JailedReader[ReadXLSXInput]):
    """Returns all sheets with values and formulas; upstream only returns the first sheet."""

    name = "ReadXLSX"
    description = "This tool reads an XLSX file and returns its content as CSV-formatted text."
    input_type = ReadXLSXInput
    outputs = (Parameter(type="text", description="Extracted XLSX content as CSV text."),)
    packages = ("openpyxl",)
    modules = xlsx.DRIVER.modules

    async def read(self, data: bytes, jail: Jail) -> str:
        return (await xlsx.read_xlsx(data, jail)).as_text()
