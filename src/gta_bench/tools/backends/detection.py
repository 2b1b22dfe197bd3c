"""Objects by description, found by the detector; refused where it could only guess."""

from typing import TYPE_CHECKING

from gta_bench.errors import ToolError
from gta_bench.tools.backends.boxes import parse_box
from gta_bench.tools.backends.labels import CLASSES, match
from gta_bench.tools.backends.local import KnownObject, find_objects
from gta_bench.tools.backends.pictures import encode
from gta_bench.tools.contract import Equipment

if TYPE_CHECKING:
    from PIL.Image import Image

SURE = 0.5
SAME = 0.7  # boxes of different classes that overlap more are one thing seen twice


def class_of(description: str) -> str:
    """The detector's class for a description; a ToolError says what can be asked instead."""
    found = match(description)
    if found is None:
        raise ToolError(
            f"The offline detector does not know {description[:80]!r}. "
            f"It knows: {', '.join(CLASSES)}."
        )
    if found.unseen:
        raise ToolError(
            f"The offline detector finds {found.label!r}, but cannot tell {found.unseen!r} from "
            f"others. Ask for {found.label!r}."
        )
    return found.label


async def objects_like(
    equipment: Equipment, data: bytes, path: str, description: str, *, floor: float
) -> list[KnownObject]:
    """The objects that fit a description, the surest first."""
    label = class_of(description)
    found = await find_objects(equipment, data, path, floor=floor)
    return [one for one in found if one.label == label]


def distinct(found: list[KnownObject]) -> list[KnownObject]:
    """Each thing once, under its surest class."""
    kept: list[KnownObject] = []
    for one in found:
        if all(one.box.overlap(other.box) < SAME for other in kept):
            kept.append(one)
    return kept


def cut(picture: "Image", bbox: str) -> "Image":
    """The part of a picture inside a box."""
    return picture.crop(parse_box(bbox, picture.size))


def cut_bytes(picture: "Image", bbox: str) -> bytes:
    """The part of a picture inside a box, encoded."""
    return encode(cut(picture, bbox))
