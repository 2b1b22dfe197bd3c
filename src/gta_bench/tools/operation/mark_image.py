"""DrawBox and AddText: a labeled box or a text on an image."""

from abc import abstractmethod

from pydantic import Field

from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import (
    Availability,
    Available,
    ImagePath,
    Input,
    Made,
    Tool,
    ToolInput,
    file_part,
)
from gta_bench.tools.fonts import text_face
from gta_bench.tools.packages import find_missing, name_and_version

PACKAGE = "pillow"
OUTPUT_DIR = "Accepted and not used: the image is always saved among the task's outputs."
FILENAME = "Optional filename of the edited image."


class ImageMarker(Tool[Input]):
    """Draws on an image with Pillow. A mark is completely visible, or the call is refused."""

    category = "operation"
    version = "1"
    outputs = (Parameter(type="image"),)

    @abstractmethod
    def draw(self, workspace: Workspace, given: Input) -> OutputFile:
        """Draw and save a copy of the image."""

    def check(self) -> Availability:
        return find_missing("PIL") or Available(self._backend())

    def _backend(self) -> str:
        face = text_face()
        note = "" if face.cjk else " (no CJK font here)"
        return f"{name_and_version(PACKAGE)}, {face.name}{note}"

    async def apply(self, workspace: Workspace, given: Input) -> Made:
        try:
            output = await self.equipment.in_thread(self.draw, workspace, given)
        except ToolError as exc:
            raise ToolError(f"{self.name}: {exc}") from exc
        return Made((file_part("image", output),), backend=self._backend())


class DrawBoxInput(ToolInput):
    """An image, a box and its label."""

    image: ImagePath = Field(description="Image to draw the bounding box on.")
    bbox: str = Field(description="The bbox coordinate in the format of `(x1, y1, x2, y2)`")
    annotation: str | None = Field(None, description="The extra annotation text of the bbox")
    output_dir: str | None = Field(None, description=OUTPUT_DIR)
    filename: str | None = Field(None, description=FILENAME)


class DrawBox(ImageMarker[DrawBoxInput]):
    """Marks a region; the corners may be in any order, and the box is cut to the image."""

    name = "DrawBox"
    description = (
        "A tool to draw a box on a certain region of the input image: a translucent box with an "
        "optional annotation text."
    )
    input_type = DrawBoxInput

    def draw(self, workspace: Workspace, given: DrawBoxInput) -> OutputFile:
        from gta_bench.tools.operation.drawing import Size, draw_box, read_box
        from gta_bench.tools.pictures import open_picture, save_picture

        picture = open_picture(workspace, given.image)
        box = read_box(given.bbox, Size(*picture.image.size))
        drawn = draw_box(picture.image, box, (given.annotation or "").strip())
        name = given.filename or f"{picture.name}-box"
        return save_picture(workspace, picture, drawn, name=name)


class AddTextInput(ToolInput):
    """An image, a text, its position and its color."""

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
    output_dir: str | None = Field(None, description=OUTPUT_DIR)
    filename: str | None = Field(None, description=FILENAME)


class AddText(ImageMarker[AddTextInput]):
    """Writes on an image at a point or anchor; the text is wrapped and scaled to fit."""

    name = "AddText"
    description = (
        "A tool to overlay text onto the input image at a coordinate or an anchor position. Long "
        "text is wrapped and made smaller until it fits."
    )
    input_type = AddTextInput

    def draw(self, workspace: Workspace, given: AddTextInput) -> OutputFile:
        from gta_bench.tools.operation.drawing import draw_caption, read_color, read_position
        from gta_bench.tools.pictures import open_picture, save_picture

        color, position = read_color(given.color), read_position(given.position)
        picture = open_picture(workspace, given.image)
        drawn = draw_caption(picture.image, given.text, position, color)
        name = given.filename or f"{picture.name}-text"
        return save_picture(workspace, picture, drawn, name=name)
