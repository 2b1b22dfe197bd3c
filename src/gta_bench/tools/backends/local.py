"""Local models as tools see them: whether they are here, and what they find in an image."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter

from gta_bench.errors import ToolUnavailable
from gta_bench.packages import install_command, missing_packages
from gta_bench.tools.backends.boxes import Box
from gta_bench.tools.backends.workers import shared_workers
from gta_bench.tools.contract import Availability, Available, Equipment, Unavailable
from gta_bench.weights import KNOWN, Weights, present

DETECTOR = KNOWN["ssd-mobilenet-v3"]
PAINTER = KNOWN["magenta-26-styles"]


class _Line(NamedTuple):
    """A line of text and where it stands."""

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
    """The lines of text on an image, by RapidOCR."""
    outcome = await shared_workers().run("ocr", data, {"path": path})
    return [_Line(Box(*line[:4]), line[4]) for line in LINES.validate_python(outcome.value)]


async def find_objects(
    equipment: Equipment, data: bytes, path: str, *, floor: float
) -> list[KnownObject]:
    """The objects that the detector knows, from that score on, the surest first."""
    options = _with_weights(equipment, DETECTOR, {"path": path, "floor": floor})
    outcome = await shared_workers().run("detect", data, options)
    found = OBJECTS.validate_python(outcome.value)
    return [KnownObject(Box(*one[:4]), one[4], one[5]) for one in found]


async def stylize(equipment: Equipment, data: bytes, path: str, *, style: int) -> bytes:
    """The image in one of the 26 styles, as PNG."""
    options = _with_weights(equipment, PAINTER, {"path": path, "style": style})
    return (await shared_workers().run("stylize", data, options)).data


def check_text() -> Availability:
    """Whether text can be read here."""
    state = lacking("rapidocr", "onnxruntime", "cv2")
    return state or Available(f"rapidocr {_version('rapidocr')} (PP-OCRv6 small)")


def check_objects(equipment: Equipment) -> Availability:
    """Whether objects can be found here."""
    return _model(equipment, DETECTOR, "cv2", "opencv-python-headless")


def check_styles(equipment: Equipment) -> Availability:
    """Whether pictures can be painted over here."""
    return _model(equipment, PAINTER, "onnxruntime", "onnxruntime")


def _model(equipment: Equipment, weights: Weights, module: str, distribution: str) -> Availability:
    if missing := lacking(module):
        return missing
    if present(weights, equipment.weights) is None:
        reason = f"the weights of {weights.name} are not here."
        return Unavailable(reason, f"gta tools fetch {weights.name}")
    return Available(f"{weights.label} ({distribution} {_version(distribution)})")


def lacking(*modules: str) -> Unavailable | None:
    """What is missing of these modules, none of which is imported."""
    absent = missing_packages(*modules)
    if not absent:
        return None
    return Unavailable(f"not installed: {', '.join(absent)}.", install_command("tools"))


@cache
def _version(distribution: str) -> str:
    return version(distribution)


def _with_weights(
    equipment: Equipment, weights: Weights, options: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    folder: Path | None = present(weights, equipment.weights)
    if folder is None:
        mend = f"gta tools fetch {weights.name}"
        raise ToolUnavailable(f"The weights of {weights.name} are not here.", mend=mend)
    return {**options, "weights": str(folder)}
