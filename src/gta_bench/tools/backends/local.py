"""Local models for tools: whether they are installed, and what they find in an image."""

from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter

from gta_bench.tools.backends.boxes import Box
from gta_bench.tools.backends.workers import get_workers
from gta_bench.tools.contract import Availability, Available, Equipment, Unavailable, require
from gta_bench.tools.packages import find_missing, name_and_version
from gta_bench.weights import KNOWN, Weights, find_weights

DETECTOR = KNOWN["ssd-mobilenet-v3"]
PAINTER = KNOWN["magenta-26-styles"]


class _Line(NamedTuple):
    """A line of text and its box."""

    box: Box
    text: str


class KnownObject(NamedTuple):
    """An object of a known class, with the model's confidence between 0 and 1."""

    box: Box
    label: str
    score: float


LINES = TypeAdapter(list[tuple[int, int, int, int, str]])
OBJECTS = TypeAdapter(list[tuple[int, int, int, int, str, float]])


async def read_text(data: bytes, path: str) -> list[_Line]:
    """Return the lines of text on an image, by RapidOCR."""
    outcome = await get_workers().run("ocr", data, {"path": path})
    return [_Line(Box(*line[:4]), line[4]) for line in LINES.validate_python(outcome.value)]


async def find_objects(
    equipment: Equipment, data: bytes, path: str, *, floor: float
) -> list[KnownObject]:
    """Return the objects with at least that score, highest score first."""
    weights = str(require(_find_weights(equipment, DETECTOR)))
    options: dict[str, JsonValue] = {"path": path, "floor": floor, "weights": weights}
    outcome = await get_workers().run("detect", data, options)
    found = OBJECTS.validate_python(outcome.value)
    return [KnownObject(Box(*one[:4]), one[4], one[5]) for one in found]


async def stylize(equipment: Equipment, data: bytes, path: str, *, style: int) -> bytes:
    """Return the image in one of the 26 styles, as PNG."""
    weights = str(require(_find_weights(equipment, PAINTER)))
    options: dict[str, JsonValue] = {"path": path, "style": style, "weights": weights}
    return (await get_workers().run("stylize", data, options)).data


def check_text() -> Availability:
    """Return whether text can be read here."""
    state = find_missing("rapidocr", "onnxruntime", "cv2")
    return state or Available(f"{name_and_version('rapidocr')} (PP-OCRv6 small)")


def check_objects(equipment: Equipment) -> Availability:
    """Return whether objects can be detected here."""
    return _check_model(equipment, DETECTOR, "cv2", "opencv-python-headless")


def check_styles(equipment: Equipment) -> Availability:
    """Return whether pictures can be stylized here."""
    return _check_model(equipment, PAINTER, "onnxruntime", "onnxruntime")


def _check_model(
    equipment: Equipment, weights: Weights, module: str, distribution: str
) -> Availability:
    found = find_missing(module) or _find_weights(equipment, weights)
    if isinstance(found, Unavailable):
        return found
    return Available(f"{weights.label} ({name_and_version(distribution)})")


def _find_weights(equipment: Equipment, weights: Weights) -> Path | Unavailable:
    folder = find_weights(weights, equipment.weights)
    if folder is not None:
        return folder
    reason = f"The weights of {weights.name} are not downloaded."
    return Unavailable(reason, f"gta tools fetch {weights.name}")
