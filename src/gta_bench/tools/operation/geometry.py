"""Boxes and places as agents write them: read, put in order, kept inside the picture."""

import math
import re
from typing import Literal, NamedTuple, NoReturn

from gta_bench.confine.names import shown
from gta_bench.errors import ToolError

AROUND = re.compile(r"[\s()\[\]{},;]+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")

Horizontal = Literal["l", "m", "r"]
Vertical = Literal["t", "m", "b"]
HORIZONTAL: dict[str, Horizontal] = {"l": "l", "m": "m", "r": "r"}
VERTICAL: dict[str, Vertical] = {"t": "t", "m": "m", "b": "b"}


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


class PixelBox(NamedTuple):
    """Pixels from left to right and top to bottom, both ends included."""

    left: int
    top: int
    right: int
    bottom: int


class Point(NamedTuple):
    """A pixel."""

    x: float
    y: float


class Anchor(NamedTuple):
    """A side, corner or the middle of the picture."""

    horizontal: Horizontal
    vertical: Vertical


def read_numbers(written: str, count: int, form: str) -> tuple[float, ...]:
    """Exactly so many finite numbers, in any brackets or none."""
    words = [word for word in AROUND.split(written.strip(" \t\n'\"`")) if word]
    numbers = tuple(float(word) for word in words if NUMBER.fullmatch(word))
    if len(numbers) != len(words) or len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise ToolError(f"{shown(written)} is not of the form `{form}`.")
    return numbers


def read_box(written: str, size: Size) -> PixelBox:
    """A box from `(x1, y1, x2, y2)`, whichever corners they are, cut to the picture."""
    x1, y1, x2, y2 = read_numbers(written, 4, "(x1, y1, x2, y2)")
    left, right = sorted((x1, x2))
    top, bottom = sorted((y1, y2))
    if right < 0 or bottom < 0 or left >= size.width or top >= size.height:
        width, height = size
        raise ToolError(
            f"The box {shown(written)} lies outside of the image, which has {width} x {height} "
            "pixels."
        )
    most_x, most_y = size.width - 1, size.height - 1
    return PixelBox(
        _pixel(left, most_x), _pixel(top, most_y), _pixel(right, most_x), _pixel(bottom, most_y)
    )


def read_position(written: str) -> Point | Anchor:
    """A point from `(x, y)`, or an anchor from two letters such as `mt`, in either order."""
    letters = written.strip(" \t\n'\"`()[]").lower()
    if len(letters) == 2 and letters.isalpha():
        return _anchor(letters) or _refuse(written)
    try:
        return Point(*read_numbers(written, 2, "(x, y)"))
    except ToolError:
        return _refuse(written)


def _anchor(letters: str) -> Anchor | None:
    for spelling in (letters, letters[::-1]):
        horizontal, vertical = HORIZONTAL.get(spelling[0]), VERTICAL.get(spelling[1])
        if horizontal is not None and vertical is not None:
            return Anchor(horizontal, vertical)
    return None


def _refuse(written: str) -> NoReturn:
    raise ToolError(
        f"The position {shown(written)} is neither `(x, y)` nor one of l, m, r followed by one of "
        "t, m, b, such as `mt`."
    )


def _pixel(value: float, most: int) -> int:
    return round(min(max(value, 0), most))
