"""The size of a picture that can be shown."""

import io

from PIL import Image

# Of a picture that shows something. A file of one color is smaller.
LEAST_BYTES = 1500
MOST_PIXELS = 50_000_000
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


def measure_picture(data: bytes) -> tuple[int, int]:
    """Return width and height in pixels; 0 and 0 if it cannot be shown, or shows nothing."""
    if len(data) < LEAST_BYTES:
        return 0, 0
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            wide, high = picture.size
            if wide * high > MOST_PIXELS:
                return 0, 0
            picture.load()
            return wide, high
    except Exception:  # noqa: BLE001 - a decoder has many ways to refuse damaged bytes
        return 0, 0
