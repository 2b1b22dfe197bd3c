"""DocxFileGenerator: a Word document from Markdown."""

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
from gta_bench.tools.documents.pandoc import pandoc_missing, pandoc_version, run_pandoc
from gta_bench.tools.documents.reference import reference_docx
from gta_bench.tools.operation.fields import FileName, ImagePaths, OutputDir

MADE = "made.docx"


class DocxInput(ToolInput):
    """Upstream's arguments."""

    filename: FileName = Field(
        description="The base name of the DOCX file to generate (without extension)."
    )
    content: str = Field(
        description="Text content to write into the DOCX file, as Markdown: headings, lists, "
        "tables, code, formulas between dollars. Use placeholders like {{image_1}}, {{image_2}} "
        "in the content parameter to specify exactly where images should be inserted."
    )
    image_paths: ImagePaths
    output_dir: OutputDir = None
    render_markdown: bool = Field(
        True,
        description="Whether to render the content as markdown format in the DOCX file; "
        "false writes the text as it is.",
    )


class DocxFileGenerator(Tool[DocxInput]):
    """Markdown through pandoc, with a reference document of our own."""

    name = "DocxFileGenerator"
    category = "operation"
    description = "Generates a .docx file with the provided content."
    version = "1"
    input_type = DocxInput
    outputs = (Parameter(type="file", description="The generated DOCX file.", filetype="docx"),)

    def check(self) -> Availability:
        """A jail, pandoc, and Pillow for the pictures."""
        return needs.first_missing(
            needs.jail(self.equipment), pandoc_missing(), needs.packages(Pillow="PIL")
        ) or Available(pandoc_version())

    async def apply(self, workspace: Workspace, given: DocxInput) -> Made:
        """Find the pictures, let pandoc read, change and write."""
        from gta_bench.tools.documents.markdown import Manuscript, read_manuscript, typeset

        jail = self.equipment.need_jail()

        async def run(manuscript: Manuscript) -> ProgramResult:
            inputs = {**manuscript.inputs(embed=True), "reference.docx": reference_docx()}
            arguments = ["-f", manuscript.reader, "-t", "docx", "-L", "../inputs/filter.lua"]
            arguments += ["--reference-doc=../inputs/reference.docx", "-o", MADE]
            return await run_pandoc(jail, arguments, text=manuscript.text, inputs=inputs)

        manuscript = await self.equipment.in_thread(
            read_manuscript,
            workspace,
            given.content,
            given.image_paths,
            render_markdown=given.render_markdown,
        )
        done = await typeset(workspace, manuscript, run)
        output = workspace.write(given.filename, done.files[MADE], suffix=".docx")
        return Made((file_part("file", output),), backend=pandoc_version(), jail=jail.kind)
