"""Pictures that our own programs made: their type and size, from their first bytes."""

import struct
from typing import Final, Literal, NamedTuple

from gta_bench.errors import ToolError

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
