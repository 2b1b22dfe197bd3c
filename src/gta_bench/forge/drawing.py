"""Charts and shapes, drawn with Pillow's own font: the same bytes on every machine."""

import io
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from PIL import Image, ImageDraw, ImageFont

Color = tuple[int, int, int]
WHITE: Final = (255, 255, 255)
INK: Final = (40, 44, 52)
PALE: Final = (221, 225, 230)
BLUES: Final = ((46, 104, 170), (33, 122, 116), (96, 80, 150), (60, 88, 120))
OCHRES: Final = ((222, 152, 60), (200, 120, 110), (170, 160, 80), (150, 150, 158))


class BarSeries(NamedTuple):
    """Bars of one color; `shown` writes each value above its bar."""

    name: str
    values: Sequence[int]
    color: Color
    shown: bool = False


class Axis(NamedTuple):
    """A vertical axis from 0, with so many lines above it."""

    title: str
    step: int
    lines: int

    @property
    def top(self) -> int:
        """The value of the highest line."""
        return self.step * self.lines


@cache
def find_font(size: int) -> ImageFont.FreeTypeFont:
    """Return Pillow's own font, which every installation has."""
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def encode_png(image: Image.Image) -> bytes:
    """Return a picture as PNG."""
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def draw_bars(title: str, axis: Axis, labels: Sequence[str], series: Sequence[BarSeries]) -> bytes:
    """Return a bar chart as PNG: lines with numbers, and a legend if there are several series."""
    image = Image.new("RGB", (960, 600), WHITE)
    canvas = ImageDraw.Draw(image)
    left, top, right, bottom = 90, 110, 930, 520
    canvas.text((left, 24), title, INK, find_font(26))
    canvas.text((left, 62), axis.title, INK, find_font(16))
    for number in range(axis.lines + 1):
        y = bottom - (bottom - top) * number // axis.lines
        canvas.line((left, y, right, y), PALE if number else INK, 1 if number else 2)
        canvas.text((left - 10, y), f"{number * axis.step:,}", INK, find_font(16), anchor="rm")
    room = (right - left) / len(labels)
    width = int(room * 0.64 / len(series))
    for at, label in enumerate(labels):
        middle = left + room * (at + 0.5)
        canvas.text((middle, bottom + 12), label, INK, find_font(16), anchor="ma")
        for number, one in enumerate(series):
            x = round(middle - width * len(series) / 2 + width * number)
            y = bottom - round((bottom - top) * one.values[at] / axis.top)
            canvas.rectangle((x + 1, y, x + width - 2, bottom - 1), one.color)
            if one.shown:
                spot = (x + width / 2, y - 4)
                canvas.text(
                    spot, f"{one.values[at]:,}", INK, find_font(16), anchor="ms",
                    stroke_width=3, stroke_fill=WHITE,
                )  # fmt: skip
    if len(series) > 1:
        _draw_legend(canvas, series, right)
    return encode_png(image)


def _draw_legend(canvas: ImageDraw.ImageDraw, series: Sequence[BarSeries], right: int) -> None:
    for number, one in enumerate(series):
        x = right - 110 * (len(series) - number)
        canvas.rectangle((x, 64, x + 16, 80), one.color)
        canvas.text((x + 24, 72), one.name, INK, find_font(16), anchor="lm")


class ShapeBox(NamedTuple):
    """A box in pixels."""

    left: int
    top: int
    right: int
    bottom: int

    def grow(self, by: int) -> "ShapeBox":
        """Return a box that is larger on all sides."""
        return ShapeBox(self.left - by, self.top - by, self.right + by, self.bottom + by)


# Corners of each shape in a box from 0 to 1; a circle has none.
SHAPES: Final[Mapping[str, Sequence[tuple[float, float]]]] = {
    "circle": (),
    "square": ((0, 0), (1, 0), (1, 1), (0, 1)),
    "triangle": ((0.5, 0), (1, 1), (0, 1)),
    "diamond": ((0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)),
    "hexagon": ((0.25, 0), (0.75, 0), (1, 0.5), (0.75, 1), (0.25, 1), (0, 0.5)),
    "cross": (
        (0.34, 0), (0.66, 0), (0.66, 0.34), (1, 0.34), (1, 0.66), (0.66, 0.66),
        (0.66, 1), (0.34, 1), (0.34, 0.66), (0, 0.66), (0, 0.34), (0.34, 0.34),
    ),
    "star": (
        (0.5, 0), (0.62, 0.36), (1, 0.38), (0.69, 0.61), (0.81, 1),
        (0.5, 0.77), (0.19, 1), (0.31, 0.61), (0, 0.38), (0.38, 0.36),
    ),
}  # fmt: skip
FINE: Final = 4  # pixels are drawn so many times finer, for smooth edges
RED: Final = (225, 20, 30)


def draw_shapes(
    size: tuple[int, int], paper: Image.Image, shapes: Sequence[tuple[str, Color, ShapeBox]]
) -> Image.Image:
    """Return a picture of shapes that fill their boxes, on a background."""
    large = paper.resize((size[0] * FINE, size[1] * FINE), Image.Resampling.BICUBIC)
    canvas = ImageDraw.Draw(large)
    for name, color, box in shapes:
        left, top, right, bottom = (FINE * one for one in box)
        if not SHAPES[name]:
            canvas.ellipse((left, top, right - 1, bottom - 1), color)
            continue
        corners = [
            (left + x * (right - 1 - left), top + y * (bottom - 1 - top)) for x, y in SHAPES[name]
        ]
        canvas.polygon(corners, color)
    return large.resize(size, Image.Resampling.BOX)


def draw_frame(image: Image.Image, box: ShapeBox, label: str = "") -> None:
    """Draw a red frame around a box, with a label above it."""
    canvas = ImageDraw.Draw(image)
    frame = box.grow(3)
    canvas.rectangle((frame.left, frame.top, frame.right - 1, frame.bottom - 1), None, RED, 3)
    if label:
        font = find_font(15)
        width = round(font.getlength(label)) + 10
        canvas.rectangle((frame.left, frame.top - 19, frame.left + width, frame.top), RED)
        canvas.text((frame.left + 5, frame.top - 9), label, WHITE, font, anchor="lm")
