"""PptxFileGenerator: a presentation with a layout in which everything fits."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.content.needs import missing_modules, missing_pandoc
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Made, Tool, ToolInput, file_part
from gta_bench.tools.documents.pandoc import pandoc_version
from gta_bench.tools.operation.shared import FileName, ImagePaths, JsonText, OutputDir, check_jailed
from gta_bench.tools.packages import name_and_version


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
        return check_jailed(self.equipment, missing, _backend)

    async def apply(self, workspace: Workspace, given: PptxInput) -> Made:
        from gta_bench.tools.documents.presentation import make_presentation
        from gta_bench.tools.documents.slides import read_slides, read_sources

        jail = self.equipment.need_jail()
        slides = await read_slides(jail, read_sources(given.slides_content_str))
        data = await self.equipment.in_thread(
            make_presentation, workspace, slides, given.image_paths
        )
        output = workspace.write(given.filename, data, suffix=".pptx")
        return Made((file_part("file", output),), backend=_backend(), jail=jail.kind)


def _backend() -> str:
    return f"{name_and_version('python-pptx')}, {pandoc_version()}"
