"""A description composed of the findings of small models: objects, text, mean color.

Its first line and the result's backend say so, so that it is not taken for a vision model.
"""

import math
from collections import Counter
from typing import TYPE_CHECKING

from gta_bench.tools.backends.detection import SURE, drop_overlaps
from gta_bench.tools.backends.local import check_objects, check_text, find_objects, read_text
from gta_bench.tools.contract import Availability, Available, Equipment, Unavailable
from gta_bench.tools.pictures import decode

if TYPE_CHECKING:
    from PIL.Image import Image

NAME = "detector-composed description"
LEAD = "Composed of the findings of an object detector (80 classes) and OCR, not of a vision model."
MOST_LINES = 40
COLORS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "gray": (128, 128, 128),
    "red": (200, 30, 30),
    "orange": (240, 140, 20),
    "yellow": (240, 220, 40),
    "green": (40, 140, 50),
    "light blue": (150, 200, 230),
    "blue": (40, 70, 190),
    "purple": (120, 50, 150),
    "pink": (240, 160, 190),
    "brown": (120, 75, 40),
    "beige": (220, 200, 170),
}


def check(equipment: Equipment) -> Availability:
    """Return whether the detector and OCR work here."""
    objects, texts = check_objects(equipment), check_text()
    if isinstance(objects, Unavailable):
        return objects
    if isinstance(texts, Unavailable):
        return texts
    return Available(f"{NAME}: {objects.backend}; {texts.backend}")


async def compose(equipment: Equipment, data: bytes, path: str) -> str:
    """Return the findings about an image, one line each."""
    picture = await equipment.in_thread(decode, data, path)
    found = drop_overlaps(await find_objects(equipment, data, path, floor=SURE))
    lines = await read_text(data, path)
    objects = Counter(one.label for one in found)
    counted = ", ".join(f"{number} x {label}" for label, number in objects.most_common())
    texts = " | ".join(line.text for line in lines[:MOST_LINES])
    width, height = picture.size
    return "\n".join(
        [
            LEAD,
            f"Objects: {counted or 'none of the known classes'}.",
            f"Text: {texts or 'none'}",
            f"Mean color: {await equipment.in_thread(mean_color, picture)}.",
            f"Size: {width} x {height} pixels.",
        ]
    )


def mean_color(picture: "Image") -> str:
    """Return the mean color of a picture: the nearest name, and its value."""
    from PIL import Image

    mean = tuple(picture.resize((1, 1), Image.Resampling.BOX).tobytes())
    name = min(COLORS, key=lambda name: math.dist(COLORS[name], mean))
    return f"{name} (#{bytes(mean).hex()})"
