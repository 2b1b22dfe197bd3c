"""What each GTA-Atomic tool is for: the category that its calls count in."""

from collections.abc import Mapping
from typing import Final

from gta_bench.records.scores import Category

CATEGORIES: Final[tuple[Category, ...]] = ("perception", "operation", "logic", "creativity")

TOOL_CATEGORY: Final[Mapping[str, Category]] = {
    "OCR": "perception",
    "ImageDescription": "perception",
    "RegionAttributeDescription": "perception",
    "TextToBbox": "perception",
    "DrawBox": "operation",
    "AddText": "operation",
    "GoogleSearch": "operation",
    "Calculator": "logic",
    "Solver": "logic",
    "Plot": "logic",
    "MathOCR": "logic",
    "CountGivenObject": "logic",
    "TextToImage": "creativity",
    "ImageStylization": "creativity",
}

# A task without reference answer asks for an image: it is judged by the calls of these tools.
IMAGE_TOOLS: Final = frozenset({"DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization"})
