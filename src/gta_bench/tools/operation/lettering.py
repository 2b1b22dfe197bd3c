"""Text that fits on a picture: wrapped between words or CJK characters, then made smaller."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from PIL import ImageDraw, ImageFont

from gta_bench.errors import ToolError
from gta_bench.tools.fonts import FontFace, text_face
from gta_bench.tools.operation.geometry import Horizontal, Size

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

SMALLEST = 6
LEGIBLE = 10
LONGEST = 10_000
LINE = 1.25  # line height, in font sizes
BASELINE = 0.98  # of the first line below the block's top, in font sizes: CJK then is in the middle

# Characters between which a line may end, with the marks that must not begin a line.
CJK = "\u2e80-\u2fff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
CLOSING = "\u3001\u3002\uff01\uff09\uff0c\uff1a\uff1b\uff1f\u300b\u300d\u300f\u3011\u201d\u2019"
PIECES = re.compile(rf"[{CJK}][{CLOSING}]*|[^\s{CJK}]+[{CLOSING}]*|\s+")


@dataclass(frozen=True)
class Lettering:
    """Lines of text in a font; `size` is what they cover."""

    lines: tuple[str, ...]
    font: Font
    letters: int
    line_height: int
    size: Size


def upstream_size(height: int) -> int:
    """Upstream's size of letters for a picture of that height (18 at 336 pixels)."""
    return max(LEGIBLE, int(height / 336 * 18))


def fit(text: str, *, letters: int, rooms: tuple[Size, ...]) -> Lettering:
    """The text in the first room that holds it, in letters as large as possible.

    Rooms are tried in order at each size, so a wider room is preferred to smaller letters.
    """
    text = text.replace("\t", "    ").strip("\n")
    if not text.strip():
        raise ToolError("The text is empty.")
    if len(text) <= LONGEST:
        for size in _sizes(letters):
            for room in rooms:
                lettering = _set(text, size, room)
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
    align: Horizontal = "l",
) -> None:
    """Draw the lines, the upper left corner of the block at that pixel."""
    left, top = at
    left += {"l": 0, "m": lettering.size.width // 2, "r": lettering.size.width}[align]
    top += round(lettering.letters * BASELINE)
    for number, line in enumerate(lettering.lines):
        place = (left, top + number * lettering.line_height)
        canvas.text(place, line, fill, lettering.font, anchor=f"{align}s")


def _sizes(largest: int) -> Iterator[int]:
    size = largest
    while size > SMALLEST:
        yield size
        size = min(size - 1, int(size * 0.92))
    yield SMALLEST


def _set(text: str, size: int, room: Size) -> Lettering | None:
    """The text in that size, or None where the room is too small."""
    font = _font(text_face(), size)
    height = round(size * LINE)
    most = room.height // height
    lines: list[str] = []
    for paragraph in text.split("\n"):
        for line in _wrapped(paragraph.rstrip(), font, room.width):
            if line is None or len(lines) >= most:
                return None
            lines.append(line)
    width = max(round(font.getlength(line) + 0.5) for line in lines)
    return Lettering(tuple(lines), font, size, height, Size(width, height * len(lines)))


def _wrapped(paragraph: str, font: Font, width: int) -> Iterator[str | None]:
    """Lines of that width; None where not even one character fits."""
    line = ""
    for piece in PIECES.findall(paragraph):
        if font.getlength(line + piece.rstrip()) <= width:
            line += piece
            continue
        if line.strip():
            yield line.rstrip()
        line = piece.lstrip()
        while font.getlength(line) > width:  # a word longer than the line
            count = _fitting(line, font, width)
            if count == 0:
                yield None
                return
            yield line[:count]
            line = line[count:]
    yield line.rstrip()


def _fitting(word: str, font: Font, width: int) -> int:
    """How many characters of a word fit."""
    low, high = 0, len(word)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if font.getlength(word[:middle]) <= width else (low, middle - 1)
    return low


@lru_cache(maxsize=64)
def _font(face: FontFace, size: int) -> Font:
    if face.file is None:
        return ImageFont.load_default(size)
    return ImageFont.truetype(face.file, size, index=face.number)
