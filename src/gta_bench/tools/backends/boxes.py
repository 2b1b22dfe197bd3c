"""Boxes in pixels: read from an agent's spelling, ordered, clamped to the image."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gta_bench.errors import ToolError

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
EXCERPT = 80


class Box(NamedTuple):
    """A rectangle in pixels, left top corner included, right bottom corner excluded."""

    x1: int
    y1: int
    x2: int
    y2: int

    def __str__(self) -> str:
        return f"({self.x1}, {self.y1}, {self.x2}, {self.y2})"

    @property
    def area(self) -> int:
        """Return the number of pixels; 0 for an empty box."""
        return max(0, self.x2 - self.x1) * max(0, self.y2 - self.y1)

    @property
    def center(self) -> tuple[float, float]:
        """Return the middle of the box."""
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2

    def has(self, point: tuple[float, float]) -> bool:
        """Return whether a point is inside."""
        return self.x1 <= point[0] < self.x2 and self.y1 <= point[1] < self.y2

    def overlap(self, other: "Box") -> float:
        """Return the intersection over union, 0 to 1."""
        shared = Box(*map(max, self[:2], other[:2]), *map(min, self[2:], other[2:])).area
        return shared / (self.area + other.area - shared) if shared else 0.0


def parse_box(spelling: str, size: tuple[int, int]) -> Box:
    """Read a box `(x1, y1, x2, y2)`, order its corners and clamp it to the image; never empty."""
    numbers = [float(number) for number in NUMBER.findall(spelling[: 4 * EXCERPT])]
    if len(numbers) != 4:
        raise ToolError(f"{spelling[:EXCERPT]!r} is not a box. Write `(x1, y1, x2, y2)` in pixels.")
    box = clamp(numbers, size)
    if not box.area:
        width, height = size
        raise ToolError(
            f"The box {spelling[:EXCERPT]!r} has no area inside the image "
            f"of {width} x {height} pixels."
        )
    return box


def clamp(corners: Sequence[float], size: tuple[int, int]) -> Box:
    """Return a box inside the image, smaller corner first; may be empty."""
    x1, y1, x2, y2 = corners
    width, height = size
    left, right = sorted(min(max(round(x), 0), width) for x in (x1, x2))
    top, bottom = sorted(min(max(round(y), 0), height) for y in (y1, y2))
    return Box(left, top, right, bottom)
