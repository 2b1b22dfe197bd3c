"""Pictures: size, format, number of frames, and previews within a bound."""

from dataclasses import dataclass, field

from pydantic import Base64Bytes, TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver, check_size

LONGEST_SIDE = 1568
MOST_PIXELS = 50_000_000
MOST_DECODED = 200_000_000  # pixels of all frames together


@dataclass(frozen=True, slots=True)
class Preview:
    """A frame of a picture, counted from 0, scaled down where it is larger than asked.

    `data` is a PNG, or a JPEG of what has many colours; `blank` if all of it has one colour.
    """

    frame: int
    data: Base64Bytes = field(repr=False)
    blank: bool


@dataclass(frozen=True, slots=True)
class ImageContent:
    """A picture as it is shown: a photo's orientation is applied before it is measured.

    `words` are written in the file beside the picture: descriptions and comments.
    """

    format: str
    mode: str
    width: int
    height: int
    frames: int
    previews: tuple[Preview, ...]
    words: str = ""

    def as_text(self) -> str:
        """What is known of the picture without looking at it."""
        moving = f", {self.frames} frames" if self.frames > 1 else ""
        return f"{self.format} picture, {self.width} x {self.height} pixels{moving}"


DRIVER = Driver("images", "The image reader", ("PIL",), TypeAdapter(ImageContent))


async def read_image(
    data: bytes, jail: Jail, *, previews: int = 1, longest_side: int = LONGEST_SIDE
) -> ImageContent:
    """Read a picture; ToolError if it is none, broken, or too large.

    `previews` frames of a moving picture are shown, the first and the last among them. Of one
    that is too long and large to decode whole, they come from its beginning.
    """
    check_size(data, label=DRIVER.label)
    return await DRIVER.read(
        jail,
        data,
        previews=previews,
        longest_side=longest_side,
        most_pixels=MOST_PIXELS,
        most_decoded=MOST_DECODED,
    )
