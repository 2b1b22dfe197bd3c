"""Text at a place of an image, wholly inside it."""

from PIL import Image, ImageColor, ImageDraw

from gta_bench.confine.names import shown
from gta_bench.errors import ToolError
from gta_bench.tools.operation.geometry import Anchor, Point, Size
from gta_bench.tools.operation.lettering import Lettering, draw, fit, upstream_size


def read_color(written: str) -> str:
    """A colour by its CSS name, as hex digits or as `rgb(…)`."""
    color = written.strip(" \t\n'\"`").lower()
    try:
        ImageColor.getrgb(color)
    except ValueError as exc:
        raise ToolError(
            f"The color {shown(written)} is unknown. Write a CSS name such as `red`, or `#ff0000`."
        ) from exc
    return color


def draw_caption(
    image: Image.Image, text: str, position: Point | Anchor, color: str
) -> Image.Image:
    """A copy of the image with the text."""
    size = Size(*image.size)
    letters = upstream_size(size.height)
    margin = min(letters // 3, size.width // 20, size.height // 20)
    room = Size(size.width - 2 * margin, size.height - 2 * margin)
    lettering = fit(text, letters=letters, rooms=_rooms(position, size, room, margin))
    overlay = Image.new("RGBA", image.size, (0, 0, 0, 0))
    place = _place(position, size, lettering, margin)
    align = position.horizontal if isinstance(position, Anchor) else "l"
    draw(ImageDraw.Draw(overlay), lettering, place, color, align=align)
    composed = Image.alpha_composite(image.convert("RGBA"), overlay)
    return composed if image.mode == "RGBA" else composed.convert("RGB")


def _rooms(position: Point | Anchor, size: Size, room: Size, margin: int) -> tuple[Size, ...]:
    """To the right of a point if there is some room, else the whole picture."""
    if isinstance(position, Point):
        beside = size.width - margin - round(max(position.x, margin))
        if beside >= room.width // 3:
            return Size(beside, room.height), room
    return (room,)


def _place(
    position: Point | Anchor, size: Size, lettering: Lettering, margin: int
) -> tuple[int, int]:
    """The block's upper left corner, moved so far that all of it is inside."""
    width, height = lettering.size
    most_left, most_top = size.width - margin - width, size.height - margin - height
    if isinstance(position, Point):  # its left-bottom corner
        left, top = round(position.x), round(position.y) - height
    else:
        left = {"l": margin, "m": (size.width - width) // 2, "r": most_left}[position.horizontal]
        top = {"t": margin, "m": (size.height - height) // 2, "b": most_top}[position.vertical]
    return max(margin, min(left, most_left)), max(margin, min(top, most_top))
