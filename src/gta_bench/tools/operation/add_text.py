"""AddText: text on an image at a point or anchor, wrapped and made to fit."""

from pydantic import Field

from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, ImagePath, Made, Tool, ToolInput, file_part
from gta_bench.tools.operation import marking


class AddTextInput(ToolInput):
    """An image, a text, where and in which colour."""

    image: ImagePath = Field(description="Image to annotate with text.")
    text: str = Field(description="Text content to draw on the image.")
    position: str = Field(
        description=(
            "The left-bottom corner coordinate in the format of `(x, y)`, or a combination of "
            '["l"(left), "m"(middle), "r"(right)] and ["t"(top), "m"(middle), "b"(bottom)] like '
            '"mt" for middle-top'
        )
    )
    color: str = Field("red", description="Optional text color (CSS color name or hex).")
    output_dir: str | None = Field(None, description=marking.OUTPUT_DIR)
    filename: str | None = Field(None, description=marking.FILENAME)


class AddText(Tool[AddTextInput]):
    """Writes on an image; all of the text can be seen, or the call is refused."""

    name = "AddText"
    category = "operation"
    description = (
        "A tool to overlay text onto the input image at a coordinate or an anchor position. Long "
        "text is wrapped and made smaller until it fits."
    )
    version = "1"
    input_type = AddTextInput
    outputs = (Parameter(type="image"),)

    def check(self) -> Availability:
        """Pillow."""
        return marking.check()

    async def apply(self, workspace: Workspace, given: AddTextInput) -> Made:
        """Write off the event loop."""
        try:
            output = await self.equipment.in_thread(_write, workspace, given)
        except ToolError as exc:
            raise ToolError(f"AddText: {exc}") from exc
        return Made((file_part("image", output),), backend=marking.backend())


def _write(workspace: Workspace, given: AddTextInput) -> OutputFile:
    from gta_bench.tools.operation.captions import draw_caption, read_color
    from gta_bench.tools.operation.geometry import read_position
    from gta_bench.tools.pictures import open_picture, save_picture

    color, position = read_color(given.color), read_position(given.position)
    picture = open_picture(workspace, given.image)
    written = draw_caption(picture.image, given.text, position, color)
    return save_picture(workspace, picture, written, name=given.filename or f"{picture.name}-text")
