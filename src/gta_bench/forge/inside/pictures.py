"""The size of a picture, from the first bytes of its file."""

import struct

# Of a picture that shows something. A file of one color is smaller.
LEAST_BYTES = 1500


def measure_picture(data: bytes) -> tuple[int, int]:
    """Return width and height in pixels; 0 and 0 if it is none, or too small to show anything."""
    try:
        return _measure(data) if len(data) >= LEAST_BYTES else (0, 0)
    except (struct.error, IndexError):
        return 0, 0


def _measure(data: bytes) -> tuple[int, int]:
    size: tuple[int, int] = (0, 0)
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        size = struct.unpack(">II", data[16:24])
    elif data[:3] == b"GIF":
        size = struct.unpack("<HH", data[6:10])
    elif data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8 ":
        wide, high = struct.unpack("<HH", data[26:30])
        size = wide & 0x3FFF, high & 0x3FFF
    elif data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8L":
        bits = int.from_bytes(data[21:25], "little")
        size = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif data[:2] == b"\xff\xd8":
        size = _measure_jpeg(data)
    return size


def _measure_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at < len(data):
        marker, length = struct.unpack(">HH", data[at : at + 4])
        # The marks of a frame, which has the size, without tables between them.
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            high, wide = struct.unpack(">HH", data[at + 5 : at + 9])
            return wide, high
        at += 2 + length
    return 0, 0
