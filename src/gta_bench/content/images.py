"""Pictures: size, format, number of frames, and previews of limited size."""

import struct
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pydantic import Base64Bytes, TypeAdapter

from gta_bench.confine.jail import Jail
from gta_bench.content.driver import Driver, check_size
from gta_bench.errors import ToolError

LONGEST_SIDE = 1568
MOST_PIXELS = 50_000_000
MOST_DECODED = 200_000_000  # pixels of all frames together
PNG: Final = b"\x89PNG\r\n\x1a\n"
JPEG: Final = b"\xff\xd8"
# JPEG markers that start a frame; the size follows them.
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


@dataclass(frozen=True, slots=True)
class Preview:
    """A frame of a picture, counted from 0, scaled down if it is too large.

    `data` is a PNG, or a JPEG if there are many colors. `blank` means that all pixels are alike.
    """

    frame: int
    data: Base64Bytes = field(repr=False)
    blank: bool


@dataclass(frozen=True, slots=True)
class ImageContent:
    """A picture as it is shown: its size is measured after applying a photo's orientation.

    `words` is text in the file besides the picture, such as descriptions and comments.
    """

    format: str
    mode: str
    width: int
    height: int
    frames: int
    previews: tuple[Preview, ...]
    words: str = ""


DRIVER = Driver("images", "The image reader", ("PIL",), TypeAdapter(ImageContent))


async def read_image(
    data: bytes, jail: Jail, *, previews: int = 1, longest_side: int = LONGEST_SIDE
) -> ImageContent:
    """Read a picture. Raises ToolError if it is not a picture, is broken, or is too large.

    Of an animation, `previews` frames are returned, including the first and the last. If it is
    too large to decode completely, they come from its beginning.
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


class _PictureSize(NamedTuple):
    """A picture's type and size in pixels."""

    media_type: Literal["image/png", "image/jpeg"]
    width: int
    height: int


def measure_picture(data: bytes) -> _PictureSize:
    """Return the type and size of a PNG or JPEG of our own. Raises ToolError for anything else."""
    if data.startswith(PNG) and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return _PictureSize("image/png", width, height)
    if data.startswith(JPEG):
        return _measure_jpeg(data)
    raise ToolError("A renderer returned a picture that is neither PNG nor JPEG.")


def _measure_jpeg(data: bytes) -> _PictureSize:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return _PictureSize("image/jpeg", width, height)
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    raise ToolError("A renderer returned a JPEG without a size.")
