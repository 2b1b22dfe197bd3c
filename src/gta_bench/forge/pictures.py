"""Pictures with text on them, drawn with fonts that every installation has.

The fonts are those of matplotlib's package, because the fonts of a machine are its own.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from gta_bench.errors import EnvironmentProblem
from gta_bench.forge.drawing import encode_png
from gta_bench.packages import install_command
from gta_bench.tools.backends.boxes import Box

Face = Literal["sans", "bold", "mono", "serif"]
FILES: Final = {
    "sans": "DejaVuSans.ttf",
    "bold": "DejaVuSans-Bold.ttf",
    "mono": "DejaVuSansMono.ttf",
    "serif": "DejaVuSerif.ttf",
}
INK: Final = "#222222"


class DrawnLine(NamedTuple):
    """A text on a picture and the box around it."""

    box: Box
    text: str


class DrawnPicture(NamedTuple):
    """A PNG, and every text that was written on it."""

    data: bytes
    lines: tuple[DrawnLine, ...]


class Canvas:
    """A picture while it is drawn."""

    def __init__(self, width: int, height: int, paper: str = "white") -> None:
        self._image = Image.new("RGB", (width, height), paper)
        self._pen = ImageDraw.Draw(self._image)
        self._lines: list[DrawnLine] = []
        self.width, self.height = width, height

    def write(
        self,
        at: tuple[float, float],
        text: str,
        size: int,
        *,
        face: Face = "sans",
        ink: str = INK,
        anchor: str = "lm",
    ) -> Box:
        """Write one line, and return the box around it."""
        font = load_font(face, size)
        self._pen.text(at, text, fill=ink, font=font, anchor=anchor)
        left, top, right, bottom = self._pen.textbbox(at, text, font=font, anchor=anchor)
        box = Box(int(left), int(top), int(right) + 1, int(bottom) + 1)
        self._lines.append(DrawnLine(box, text))
        return box

    def fill(self, box: tuple[float, float, float, float], color: str, *, edge: str = "") -> None:
        """Fill a rectangle, with an edge if that has a color."""
        self._pen.rectangle(box, fill=color, outline=edge or None, width=3 if edge else 0)

    def rule(self, y: float, left: float, right: float, color: str, width: int = 2) -> None:
        """Draw a horizontal line."""
        self._pen.line((left, y, right, y), fill=color, width=width)

    def dash(self, y: float, left: int, right: int, color: str) -> None:
        """Draw a horizontal dashed line."""
        for start in range(left, right, 16):
            self.rule(y, start, min(start + 8, right), color)

    def grid(self, step: int, color: str) -> None:
        """Draw squared paper."""
        for x in range(0, self.width, step):
            self._pen.line((x, 0, x, self.height), fill=color)
        for y in range(0, self.height, step):
            self._pen.line((0, y, self.width, y), fill=color)

    def finish(self) -> DrawnPicture:
        """Return the picture."""
        return DrawnPicture(encode_png(self._image), tuple(self._lines))


@cache
def load_font(face: Face, size: int) -> ImageFont.FreeTypeFont:
    """Return a font of matplotlib's package."""
    file = _find_fonts() / FILES[face]
    # The other layout engine depends on libraries of the machine.
    return ImageFont.truetype(file, size, layout_engine=ImageFont.Layout.BASIC)


@cache
def _find_fonts() -> Path:
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise EnvironmentProblem(
            f"Drawing pictures needs the fonts of matplotlib: {install_command('forge')}"
        )
    return Path(spec.origin).parent / "mpl-data/fonts/ttf"
