"""Boxes and text on pictures: positions as agents write them, and text that is made to fit."""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageColor, ImageDraw, ImageFont

from gta_bench.confine.names import quote_foreign
from gta_bench.errors import ToolError
from gta_bench.tools.fonts import FontFace, text_face

AROUND = re.compile(r"[\s()\[\]{},;]+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
SMALLEST = 6
LEGIBLE = 10
LONGEST = 10_000
LINE = 1.25  # line height, in font sizes
BASELINE = 0.98  # of the first line, in font sizes below the top; this centers CJK text
# A line may end between these characters, but not before the marks.
CJK = "\u2e80-\u2fff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
CLOSING = "\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b\uff1f\u300b\u300d\u300f\u3011\u201d\u2019"
PIECES = re.compile(rf"[{CJK}][{CLOSING}]*|[^\s{CJK}]+[{CLOSING}]*|\s+")
BOX_FILL = (255, 0, 0, 56)
BOX_LINE = (255, 0, 0, 255)
LABEL_COLOR = "white"


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


class PixelBox(NamedTuple):
    """A box in pixels; all four sides are included."""

    left: int
    top: int
    right: int
    bottom: int


class Point(NamedTuple):
    """A pixel."""

    x: float
    y: float


class Anchor(NamedTuple):
    """A corner, a side or the middle of a picture: one of l, m, r and one of t, m, b."""

    horizontal: str
    vertical: str


def read_numbers(written: str, count: int, form: str) -> tuple[float, ...]:
    """Read exactly `count` finite numbers, with or without brackets."""
    words = [word for word in AROUND.split(written.strip(" \t\n'\"`")) if word]
    numbers = tuple(float(word) for word in words if NUMBER.fullmatch(word))
    if len(numbers) != len(words) or len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise ToolError(f"{quote_foreign(written)} does not have the form `{form}`.")
    return numbers


def read_box(written: str, size: Size) -> PixelBox:
    """Read a box from `(x1, y1, x2, y2)`, any two opposite corners, and cut it to the picture."""
    x1, y1, x2, y2 = read_numbers(written, 4, "(x1, y1, x2, y2)")
    left, right = sorted((x1, x2))
    top, bottom = sorted((y1, y2))
    if right < 0 or bottom < 0 or left >= size.width or top >= size.height:
        raise ToolError(
            f"The box {quote_foreign(written)} is outside of the image, which has {size.width} x "
            f"{size.height} pixels."
        )
    columns = [round(min(max(x, 0), size.width - 1)) for x in (left, right)]
    rows = [round(min(max(y, 0), size.height - 1)) for y in (top, bottom)]
    return PixelBox(columns[0], rows[0], columns[1], rows[1])


def read_position(written: str) -> Point | Anchor:
    """Read a point from `(x, y)`, or an anchor from two letters such as `mt`, in any order."""
    letters = written.strip(" \t\n'\"`()[]").lower()
    for spelling in (letters, letters[::-1]):
        if re.fullmatch("[lmr][tmb]", spelling):
            return Anchor(*spelling)
    try:
        return Point(*read_numbers(written, 2, "(x, y)"))
    except ToolError as exc:
        raise ToolError(
            f"The position {quote_foreign(written)} is neither `(x, y)` nor one of l, m, r "
            "followed by one of t, m, b, such as `mt`."
        ) from exc


@dataclass(frozen=True)
class Lettering:
    """Lines of text in a font; `size` is the area that they cover."""

    lines: tuple[str, ...]
    font: Font
    letters: int
    line_height: int
    size: Size


def upstream_size(height: int) -> int:
    """Return upstream's font size for a picture of this height (18 at 336 pixels)."""
    return max(LEGIBLE, int(height / 336 * 18))


def fit(text: str, *, letters: int, rooms: tuple[Size, ...]) -> Lettering:
    """Fit the text into one of the rooms, in letters as large as possible.

    The rooms are tried in order at each size, so a larger room is preferred to smaller letters.
    """
    text = text.replace("\t", "    ").strip("\n")
    if not text.strip():
        raise ToolError("The text is empty.")
    if len(text) <= LONGEST:
        for size in _sizes(letters):
            for room in rooms:
                lettering = _set_text(text, size, room)
                if lettering is not None:
                    return lettering
    width, height = rooms[-1]
    raise ToolError(
        f"The text of {len(text)} characters does not fit into {width} x {height} pixels; "
        "shorten it or use a larger image."
    )


def draw(
    canvas: ImageDraw.ImageDraw,
    lettering: Lettering,
    at: tuple[int, int],
    fill: str,
    *,
    align: str = "l",
) -> None:
    """Draw the lines with the upper left corner of the block at a pixel."""
    left, top = at
    left += {"l": 0, "m": lettering.size.width // 2, "r": lettering.size.width}[align]
    top += round(lettering.letters * BASELINE)
    for number, line in enumerate(lettering.lines):
        corner = (left, top + number * lettering.line_height)
        canvas.text(corner, line, fill, lettering.font, anchor=f"{align}s")


def _sizes(largest: int) -> Iterator[int]:
    size = largest
    while size > SMALLEST:
        yield size
        size = min(size - 1, int(size * 0.92))
    yield SMALLEST


def _set_text(text: str, size: int, room: Size) -> Lettering | None:
    """Set the text in this size; None if the room is too small."""
    font = _load_font(text_face(), size)
    height = round(size * LINE)
    most = room.height // height
    lines: list[str] = []
    for paragraph in text.split("\n"):
        for line in _wrap(paragraph.rstrip(), font, room.width):
            if line is None or len(lines) >= most:
                return None
            lines.append(line)
    width = max(round(font.getlength(line) + 0.5) for line in lines)
    return Lettering(tuple(lines), font, size, height, Size(width, height * len(lines)))


def _wrap(paragraph: str, font: Font, width: int) -> Iterator[str | None]:
    """Yield lines of this width; None if not even one character fits."""
    line = ""
    for piece in PIECES.findall(paragraph):
        if font.getlength(line + piece.rstrip()) <= width:
            line += piece
            continue
        if line.strip():
            yield line.rstrip()
        line = piece.lstrip()
        while font.getlength(line) > width:  # a word longer than the line
            count = _count_fitting(line, font, width)
            if count == 0:
                yield None
                return
            yield line[:count]
            line = line[count:]
    yield line.rstrip()


def _count_fitting(word: str, font: Font, width: int) -> int:
    """Return how many characters of a word fit."""
    counts = range(1, len(word) + 1)
    return bisect_right(counts, float(width), key=lambda count: font.getlength(word[:count]))


@lru_cache(maxsize=64)
def _load_font(face: FontFace, size: int) -> Font:
    if face.file is None:
        return ImageFont.load_default(size)
    return ImageFont.truetype(face.file, size, index=face.number)


def read_color(written: str) -> str:
    """Read a color: a CSS name, hex digits or `rgb(…)`."""
    color = written.strip(" \t\n'\"`").lower()
    try:
        ImageColor.getrgb(color)
    except ValueError as exc:
        raise ToolError(
            f"The color {quote_foreign(written)} is unknown. Use a CSS name such as `red`, "
            "or `#ff0000`."
        ) from exc
    return color


def draw_caption(
    image: Image.Image, text: str, position: Point | Anchor, color: str
) -> Image.Image:
    """Return a copy of the image with the text."""
    size = Size(*image.size)
    letters = upstream_size(size.height)
    margin = min(letters // 3, size.width // 20, size.height // 20)
    room = Size(size.width - 2 * margin, size.height - 2 * margin)
    lettering = fit(text, letters=letters, rooms=_find_rooms(position, size, room, margin))
    overlay = Image.new("RGBA", image.size, (0, 0, 0, 0))
    corner = _place_caption(position, size, lettering, margin)
    align = position.horizontal if isinstance(position, Anchor) else "l"
    draw(ImageDraw.Draw(overlay), lettering, corner, color, align=align)
    composed = Image.alpha_composite(image.convert("RGBA"), overlay)
    return composed if image.mode == "RGBA" else composed.convert("RGB")


def _find_rooms(position: Point | Anchor, size: Size, room: Size, margin: int) -> tuple[Size, ...]:
    """Return the room to the right of a point if it is wide enough, then the whole picture."""
    if isinstance(position, Point):
        beside = size.width - margin - round(max(position.x, margin))
        if beside >= room.width // 3:
            return Size(beside, room.height), room
    return (room,)


def _place_caption(
    position: Point | Anchor, size: Size, lettering: Lettering, margin: int
) -> tuple[int, int]:
    """Return the upper left corner of the block, moved so that all of it is inside."""
    width, height = lettering.size
    most_left, most_top = size.width - margin - width, size.height - margin - height
    if isinstance(position, Point):  # its left-bottom corner
        left, top = round(position.x), round(position.y) - height
    else:
        left = {"l": margin, "m": (size.width - width) // 2, "r": most_left}[position.horizontal]
        top = {"t": margin, "m": (size.height - height) // 2, "b": most_top}[position.vertical]
    return max(margin, min(left, most_left)), max(margin, min(top, most_top))


def draw_box(image: Image.Image, box: PixelBox, label: str) -> Image.Image:
    """Return a copy of the image with a translucent red box and a label on a red plate."""
    overlay = Image.new("RGBA", image.size, (0, 0, 0, 0))
    canvas = ImageDraw.Draw(overlay)
    width = max(1, round(min(image.size) / 200))
    canvas.rectangle(box, fill=BOX_FILL, outline=BOX_LINE, width=width)
    if label:
        _draw_label(canvas, Size(*image.size), box, label)
    composed = Image.alpha_composite(image.convert("RGBA"), overlay)
    return composed if image.mode == "RGBA" else composed.convert("RGB")


def _draw_label(canvas: ImageDraw.ImageDraw, size: Size, box: PixelBox, label: str) -> None:
    letters = upstream_size(size.height)
    margin = max(1, letters // 5)
    # If it fits above the box or into a third of the picture, it hides little.
    rooms = tuple(
        Size(size.width - 2 * margin, height - 2 * margin)
        for height in (max(box.top, size.height // 3), size.height)
    )
    lettering = fit(label, letters=letters, rooms=rooms)
    left, top = _place_label(size, box, lettering, margin)
    right = left + lettering.size.width + 2 * margin - 1
    canvas.rectangle(
        (left, top, right, top + lettering.size.height + 2 * margin - 1), fill=BOX_LINE
    )
    draw(canvas, lettering, (left + margin, top + margin), LABEL_COLOR)


def _place_label(size: Size, box: PixelBox, lettering: Lettering, margin: int) -> tuple[int, int]:
    """Return a corner above the box, or inside it if there is no room, never beyond the edge."""
    width = lettering.size.width + 2 * margin
    height = lettering.size.height + 2 * margin
    left = max(0, min(box.left, size.width - width))
    top = box.top - height if box.top >= height else box.top
    return left, max(0, min(top, size.height - height))
