"""DocxFileGenerator, PdfFileGenerator and PptxFileGenerator: documents from Markdown."""

from typing import ClassVar, Literal, TypeVar

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.needs import Missing, missing_modules, missing_pandoc
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Made, Tool, ToolInput, file_part
from gta_bench.tools.documents.fonts import missing_east_asian_font
from gta_bench.tools.documents.pandoc import pandoc_version
from gta_bench.tools.operation.shared import FileName, ImagePaths, JsonText, OutputDir, check_jailed
from gta_bench.tools.packages import name_and_version

CONTENT = (
    "as Markdown: headings, lists, tables, code, formulas between dollars. Use placeholders like "
    "{{image_1}}, {{image_2}} in the content parameter to specify exactly where images should be "
    "inserted."
)


class DocumentInput(ToolInput):
    """Upstream's arguments."""

    filename: FileName
    content: str
    image_paths: ImagePaths
    output_dir: OutputDir = None
    render_markdown: bool = True


AnyDocument = TypeVar("AnyDocument", bound=DocumentInput)


class DocumentTool(Tool[AnyDocument]):
    """Finds the pictures of a text and lets pandoc, and typst for PDF, make the document."""

    category = "operation"
    version = "1"
    form: ClassVar[Literal["docx", "pdf"]]

    def missing(self) -> Missing | None:
        """Return what is not installed."""
        return missing_pandoc() or missing_modules("PIL")

    def backend(self) -> str:
        """Name the programs that make the document."""
        return pandoc_version()

    def check(self) -> Availability:
        return check_jailed(self.equipment, self.missing(), self.backend)

    async def apply(self, workspace: Workspace, given: AnyDocument) -> Made:
        from gta_bench.tools.documents.markdown import make_document, read_manuscript

        jail = self.equipment.need_jail()
        manuscript = await self.equipment.in_thread(
            read_manuscript,
            workspace,
            given.content,
            given.image_paths,
            render_markdown=given.render_markdown,
        )
        data = await make_document(jail, workspace, manuscript, self.form)
        output = workspace.write(given.filename, data, suffix=f".{self.form}")
        return Made((file_part("file", output),), backend=self.backend(), jail=jail.kind)


class DocxInput(DocumentInput):
    """Upstream's arguments for Word documents."""

    filename: FileName = Field(
        description="The base name of the DOCX file to generate (without extension)."
    )
    content: str = Field(description=f"Text content to write into the DOCX file, {CONTENT}")
    render_markdown: bool = Field(
        True,
        description="Whether to render the content as markdown format in the DOCX file; "
        "false writes the text as it is.",
    )


class DocxFileGenerator(DocumentTool[DocxInput]):
    """A Word document by pandoc, with our own reference document."""

    name = "DocxFileGenerator"
    description = "Generates a .docx file with the provided content."
    input_type = DocxInput
    outputs = (Parameter(type="file", description="The generated DOCX file.", filetype="docx"),)
    form = "docx"


class PdfInput(DocumentInput):
    """Upstream's arguments for PDF files."""

    filename: FileName = Field(
        description="The base name of the PDF file to generate (without extension)."
    )
    content: str = Field(description=f"Text content to draw into the PDF file, {CONTENT}")
    render_markdown: bool = Field(
        True,
        description="Whether to render the content as markdown format in the PDF file; "
        "false writes the text as it is.",
    )


class PdfFileGenerator(DocumentTool[PdfInput]):
    """A PDF file by pandoc and typst."""

    name = "PdfFileGenerator"
    description = "Generates a PDF file with the provided content."
    input_type = PdfInput
    outputs = (Parameter(type="file", description="The generated PDF file.", filetype="pdf"),)
    form = "pdf"

    def missing(self) -> Missing | None:
        return super().missing() or missing_modules("typst") or missing_east_asian_font()

    def backend(self) -> str:
        return f"{pandoc_version()}, {name_and_version('typst')}"


class PptxInput(ToolInput):
    """Upstream's arguments."""

    filename: FileName = Field(
        description="The base name of the PPTX file to generate (without extension)."
    )
    slides_content_str: JsonText = Field(
        description="A JSON-formatted string representing a list of slides, each with a 'title' "
        "and 'content': text with Markdown, or a list of points. In 'content', use {{image_1}}, "
        "{{image_2}} placeholders to insert images."
    )
    image_paths: ImagePaths
    output_dir: OutputDir = None


class PptxFileGenerator(Tool[PptxInput]):
    """pandoc parses the texts, our layout places them, python-pptx writes the file."""

    name = "PptxFileGenerator"
    category = "operation"
    description = "Generates a PowerPoint presentation with the provided slides content."
    version = "1"
    input_type = PptxInput
    outputs = (Parameter(type="file", description="The generated PPTX file.", filetype="pptx"),)

    def check(self) -> Availability:
        missing = missing_pandoc() or missing_modules("pptx", "PIL")
        return check_jailed(self.equipment, missing, _pptx_backend)

    async def apply(self, workspace: Workspace, given: PptxInput) -> Made:
        from gta_bench.tools.documents.presentation import make_presentation
        from gta_bench.tools.documents.slides import read_slides, read_sources

        jail = self.equipment.need_jail()
        slides = await read_slides(jail, read_sources(given.slides_content_str))
        data = await self.equipment.in_thread(
            make_presentation, workspace, slides, given.image_paths
        )
        output = workspace.write(given.filename, data, suffix=".pptx")
        return Made((file_part("file", output),), backend=_pptx_backend(), jail=jail.kind)


def _pptx_backend() -> str:
    return f"{name_and_version('python-pptx')}, {pandoc_version()}"
