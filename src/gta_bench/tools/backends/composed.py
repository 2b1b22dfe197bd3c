"""A description composed of what small models see: objects, text, mean colour. No language model.

It says so in its first line and in the result's backend, so that nobody takes it for a model that
understands pictures.
"""

from collections import Counter
from typing import TYPE_CHECKING

from gta_bench.tools.backends.detection import SURE, distinct
from gta_bench.tools.backends.local import check_objects, check_text, find_objects, read_text
from gta_bench.tools.backends.pictures import decode
from gta_bench.tools.contract import Availability, Available, Equipment, Unavailable

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
    """Whether all parts are here."""
    parts = (check_objects(equipment), check_text())
    for state in parts:
        if isinstance(state, Unavailable):
            return state
    labels = [state.backend for state in parts if isinstance(state, Available)]
    return Available(f"{NAME}: {'; '.join(labels)}")


async def compose(equipment: Equipment, data: bytes, path: str) -> str:
    """The findings about an image, one line each."""
    picture = await equipment.in_thread(decode, data, path)
    found = distinct(await find_objects(equipment, data, path, floor=SURE))
    lines = await read_text(data, path)
    objects = Counter(one.label for one in found)
    counted = ", ".join(f"{number} x {label}" for label, number in objects.most_common())
    spoken = " | ".join(line.text for line in lines[:MOST_LINES])
    width, height = picture.size
    return "\n".join(
        [
            LEAD,
            f"Objects: {counted or 'none of the known classes'}.",
            f"Text: {spoken or 'none'}",
            f"Mean color: {await equipment.in_thread(mean_color, picture)}.",
            f"Size: {width} x {height} pixels.",
        ]
    )


def mean_color(picture: "Image") -> str:
    """The mean colour of a picture: the nearest name, and its value."""
    from PIL import Image

    red, green, blue = picture.resize((1, 1), Image.Resampling.BOX).tobytes()
    name = min(COLORS, key=lambda name: _distance(COLORS[name], (red, green, blue)))
    return f"{name} (#{red:02x}{green:02x}{blue:02x})"


def _distance(first: tuple[int, int, int], second: tuple[int, int, int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
