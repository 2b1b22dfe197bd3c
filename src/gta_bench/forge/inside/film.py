"""A check of clip.mp4: its size in pixels, from the head of its film track."""

import struct
from typing import Any

# Width and height.
SIZE = (0, 0)


def has_size(work: Any) -> dict[str, Any]:
    """Check that a track of the file has the size."""
    data, at, sizes = work.read("clip.mp4"), 0, []
    while (at := data.find(b"tkhd", at)) > 0:
        (length,) = struct.unpack(">I", data[at - 4 : at])
        # The last eight bytes of the box are width and height; sound has neither.
        end = data[at - 4 : at - 4 + length][-8:] if length <= 200 else b""
        if len(end) == 8:
            width, height = struct.unpack(">II", end)
            sizes += [(width >> 16, height >> 16)] if width else []
        at += 4
    found = ", ".join(f"{width} x {height}" for width, height in sizes) or "no film track"
    return {"score": SIZE in sizes, "found": found, "wanted": f"{SIZE[0]} x {SIZE[1]}"}
