"""Pictures that the forge draws, with Pillow's own font: the same bytes on every machine."""

import io
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from PIL import Image, ImageDraw, ImageFont

Color = tuple[int, int, int]
WHITE: Final = (255, 255, 255)
INK: Final = (40, 44, 52)
PALE: Final = (221, 225, 230)
BLUES: Final = ((46, 104, 170), (33, 122, 116), (96, 80, 150), (60, 88, 120))
OCHRES: Final = ((222, 152, 60), (200, 120, 110), (170, 160, 80), (150, 150, 158))


class Series(NamedTuple):
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


def draw_bars(title: str, axis: Axis, labels: Sequence[str], series: Sequence[Series]) -> bytes:
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


def _draw_legend(canvas: ImageDraw.ImageDraw, series: Sequence[Series], right: int) -> None:
    for number, one in enumerate(series):
        x = right - 110 * (len(series) - number)
        canvas.rectangle((x, 64, x + 16, 80), one.color)
        canvas.text((x + 24, 72), one.name, INK, find_font(16), anchor="lm")
