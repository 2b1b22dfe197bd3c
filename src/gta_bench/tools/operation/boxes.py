"""A box and its label on the pixels of an image."""

from PIL import Image, ImageDraw

from gta_bench.tools.operation.geometry import PixelBox, Size
from gta_bench.tools.operation.lettering import Lettering, draw, fit, upstream_size

FILL = (255, 0, 0, 56)
LINE = (255, 0, 0, 255)
TEXT = "white"


def draw_box(image: Image.Image, box: PixelBox, label: str) -> Image.Image:
    """A copy of the image with a translucent red box, and the label on a red plate."""
    overlay = Image.new("RGBA", image.size, (0, 0, 0, 0))
    canvas = ImageDraw.Draw(overlay)
    width = max(1, round(min(image.size) / 200))
    canvas.rectangle(box, fill=FILL, outline=LINE, width=width)
    if label:
        _draw_label(canvas, Size(*image.size), box, label)
    composed = Image.alpha_composite(image.convert("RGBA"), overlay)
    return composed if image.mode == "RGBA" else composed.convert("RGB")


def _draw_label(canvas: ImageDraw.ImageDraw, size: Size, box: PixelBox, label: str) -> None:
    letters = upstream_size(size.height)
    margin = max(1, letters // 5)
    # Above the box or in a third of the picture if it fits there, so that it hides little.
    rooms = tuple(
        Size(size.width - 2 * margin, height - 2 * margin)
        for height in (max(box.top, size.height // 3), size.height)
    )
    lettering = fit(label, letters=letters, rooms=rooms)
    left, top = _place(size, box, lettering, margin)
    right = left + lettering.size.width + 2 * margin - 1
    canvas.rectangle((left, top, right, top + lettering.size.height + 2 * margin - 1), fill=LINE)
    draw(canvas, lettering, (left + margin, top + margin), TEXT)


def _place(size: Size, box: PixelBox, lettering: Lettering, margin: int) -> tuple[int, int]:
    """Above the box; inside it at the top where there is no room; never over the edge."""
    width = lettering.size.width + 2 * margin
    height = lettering.size.height + 2 * margin
    left = max(0, min(box.left, size.width - width))
    top = box.top - height if box.top >= height else box.top
    return left, max(0, min(top, size.height - height))
