"""Pictures: size, format, number of frames, and previews within a bound."""

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


PNG: Final = b"\x89PNG\r\n\x1a\n"
JPEG: Final = b"\xff\xd8"
# Markers of JPEG that begin a frame, and with it state its size.
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class _Measured(NamedTuple):
    """A picture's type and size in pixels."""

    media_type: Literal["image/png", "image/jpeg"]
    width: int
    height: int


def measure(data: bytes) -> _Measured:
    """The type and size of a PNG or JPEG; ToolError if it is neither."""
    if data.startswith(PNG) and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return _Measured("image/png", width, height)
    if data.startswith(JPEG):
        return _jpeg(data)
    raise ToolError("A program made a picture that is neither PNG nor JPEG.")


def _jpeg(data: bytes) -> _Measured:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return _Measured("image/jpeg", width, height)
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    raise ToolError("A program made a JPEG without a size.")
