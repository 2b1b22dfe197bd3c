"""DrawBox: a translucent box on an image, with a label that can be read."""

from pydantic import Field

from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, ImagePath, Made, Tool, ToolInput, file_part
from gta_bench.tools.operation import marking


class DrawBoxInput(ToolInput):
    """An image, a box and what to write at it."""

    image: ImagePath = Field(description="Image to draw the bounding box on.")
    bbox: str = Field(description="The bbox coordinate in the format of `(x1, y1, x2, y2)`")
    annotation: str | None = Field(None, description="The extra annotation text of the bbox")
    output_dir: str | None = Field(None, description=marking.OUTPUT_DIR)
    filename: str | None = Field(None, description=marking.FILENAME)


class DrawBox(Tool[DrawBoxInput]):
    """Marks a region; corners in any order, cut to the image."""

    name = "DrawBox"
    category = "operation"
    description = (
        "A tool to draw a box on a certain region of the input image: a translucent box with an "
        "optional annotation text."
    )
    version = "1"
    input_type = DrawBoxInput
    outputs = (Parameter(type="image"),)

    def check(self) -> Availability:
        """Pillow."""
        return marking.check()

    async def apply(self, workspace: Workspace, given: DrawBoxInput) -> Made:
        """Draw off the event loop."""
        try:
            output = await self.equipment.in_thread(_draw, workspace, given)
        except ToolError as exc:
            raise ToolError(f"DrawBox: {exc}") from exc
        return Made((file_part("image", output),), backend=marking.backend())


def _draw(workspace: Workspace, given: DrawBoxInput) -> OutputFile:
    from gta_bench.tools.operation.boxes import draw_box
    from gta_bench.tools.operation.geometry import Size, read_box
    from gta_bench.tools.pictures import open_picture, save_picture

    picture = open_picture(workspace, given.image)
    box = read_box(given.bbox, Size(*picture.image.size))
    drawn = draw_box(picture.image, box, (given.annotation or "").strip())
    return save_picture(workspace, picture, drawn, name=given.filename or f"{picture.name}-box")
