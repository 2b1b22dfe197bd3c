"""PptxFileGenerator: a presentation in which everything fits."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part
from gta_bench.tools.documents import needs
from gta_bench.tools.documents.pandoc import pandoc_missing, pandoc_version
from gta_bench.tools.operation.fields import FileName, ImagePaths, JsonText, OutputDir


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
    """pandoc reads the texts, our layout finds a place for everything, python-pptx writes."""

    name = "PptxFileGenerator"
    category = "operation"
    description = "Generates a PowerPoint presentation with the provided slides content."
    version = "1"
    input_type = PptxInput
    outputs = (Parameter(type="file", description="The generated PPTX file.", filetype="pptx"),)

    def check(self) -> Availability:
        """A jail, pandoc, python-pptx, and Pillow for the pictures."""
        return needs.first_missing(
            needs.jail(self.equipment),
            pandoc_missing(),
            needs.packages(python_pptx="pptx", Pillow="PIL"),
        ) or Available(_backend())

    async def apply(self, workspace: Workspace, given: PptxInput) -> Made:
        """Read, lay out, write."""
        from gta_bench.tools.documents.presentation import make_presentation
        from gta_bench.tools.documents.slides import read_slides, read_texts

        jail = self.equipment.need_jail()
        slides = await read_slides(jail, read_texts(given.slides_content_str))
        data = await self.equipment.in_thread(
            make_presentation, workspace, slides, given.image_paths
        )
        output = workspace.write(given.filename, data, suffix=".pptx")
        return Made((file_part("file", output),), backend=_backend(), jail=jail.kind)


def _backend() -> str:
    return f"{needs.backend('python_pptx')}, {pandoc_version()}"
