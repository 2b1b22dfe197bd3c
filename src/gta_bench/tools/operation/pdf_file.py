"""PdfFileGenerator: pages from Markdown."""

from pydantic import Field

from gta_bench.confine.limits import ProgramResult
from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import (
    Availability,
    Available,
    Made,
    Tool,
    ToolInput,
    file_part,
)
from gta_bench.tools.documents import needs
from gta_bench.tools.documents.fonts import NO_EAST_ASIAN, has_east_asian_font, main_script
from gta_bench.tools.documents.pandoc import pandoc_missing, pandoc_version
from gta_bench.tools.operation.fields import FileName, ImagePaths, OutputDir


class PdfInput(ToolInput):
    """Upstream's arguments."""

    filename: FileName = Field(
        description="The base name of the PDF file to generate (without extension)."
    )
    content: str = Field(
        description="Text content to draw into the PDF file, as Markdown: headings, lists, "
        "tables, code, formulas between dollars. Use placeholders like {{image_1}}, {{image_2}} "
        "in the content parameter to specify exactly where images should be inserted."
    )
    image_paths: ImagePaths
    output_dir: OutputDir = None
    render_markdown: bool = Field(
        True,
        description="Whether to render the content as markdown format in the PDF file; "
        "false writes the text as it is.",
    )


class PdfFileGenerator(Tool[PdfInput]):
    """Markdown through pandoc and typst."""

    name = "PdfFileGenerator"
    category = "operation"
    description = "Generates a PDF file with the provided content."
    version = "1"
    input_type = PdfInput
    outputs = (Parameter(type="file", description="The generated PDF file.", filetype="pdf"),)

    def check(self) -> Availability:
        """A jail, pandoc, typst, Pillow for the pictures, and a font for East Asian text."""
        return needs.first_missing(
            needs.jail(self.equipment),
            pandoc_missing(),
            needs.packages(typst="typst", Pillow="PIL"),
            None if has_east_asian_font() else NO_EAST_ASIAN,
        ) or Available(_backend())

    async def apply(self, workspace: Workspace, given: PdfInput) -> Made:
        """Find the pictures, let pandoc and typst do the rest."""
        from gta_bench.tools.documents.markdown import Manuscript, read_manuscript, typeset
        from gta_bench.tools.documents.typesetting import MADE, make_pdf

        jail = self.equipment.need_jail()
        script = main_script(given.content)

        async def run(manuscript: Manuscript) -> ProgramResult:
            return await make_pdf(jail, manuscript, script)

        manuscript = await self.equipment.in_thread(
            read_manuscript,
            workspace,
            given.content,
            given.image_paths,
            render_markdown=given.render_markdown,
        )
        done = await typeset(workspace, manuscript, run)
        output = workspace.write(given.filename, done.files[MADE], suffix=".pdf")
        return Made((file_part("file", output),), backend=_backend(), jail=jail.kind)


def _backend() -> str:
    return f"{pandoc_version()}, {needs.backend('typst')}"
