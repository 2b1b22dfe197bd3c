"""TextToBbox: where a described object is in an image."""

import re
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.boxes import Box, clamp
from gta_bench.tools.backends.choice import BackedTool, EndpointBackend, ToolBackend
from gta_bench.tools.backends.detection import SURE, find_described
from gta_bench.tools.backends.local import check_objects
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, text
from gta_bench.tools.pictures import load_picture, read_input, to_send
from gta_bench.tools.prompts import render

NOTHING = "No object found."
# Lowest score of the best box if only one is wanted; upstream's limit for all boxes is 0.5.
FAINT = 0.3
FENCE = re.compile(r"^```\w*\s*|\s*```$")
Coordinate = Annotated[float, Field(allow_inf_nan=False)]


class TextToBboxInput(ToolInput):
    """An image and the object to find in it."""

    image: ImagePath
    text: str = Field(description="The object description in English.")
    top1: bool = Field(
        True,
        description="If true, return the object with highest score. "
        "If false, return all detected objects.",
    )


class Located(NamedTuple):
    """A box and its score, between 0 and 1."""

    box: Box
    score: float


class _Entry(BaseModel):
    bbox: tuple[Coordinate, Coordinate, Coordinate, Coordinate]
    score: Annotated[float, Field(ge=0, le=100)] = 1.0


ENTRIES = TypeAdapter(list[_Entry])


def format_boxes(found: list[Located], *, top1: bool) -> str:
    """Return the boxes as upstream writes them, highest score first."""
    ordered = sorted(found, key=lambda one: -one.score)[: 1 if top1 else None]
    lines = [f"{one.box}, score {round(one.score * 100)}" for one in ordered]
    return "\n".join(lines) or NOTHING


def parse_reply(reply: str, sent: tuple[int, int], size: tuple[int, int]) -> list[Located]:
    """Return a model's boxes, scaled from the size it saw to that of the image; no empty ones."""
    try:
        entries = ENTRIES.validate_json(FENCE.sub("", reply.strip()))
    except ValidationError as exc:
        raise ToolError("The model's reply is not a list of boxes. Try again.") from exc
    scale = (size[0] / sent[0], size[1] / sent[1]) * 2
    found = []
    for entry in entries:
        corners = [value * factor for value, factor in zip(entry.bbox, scale, strict=True)]
        score = entry.score if entry.score <= 1 else entry.score / 100
        found.append(Located(clamp(corners, size), score))
    return [one for one in found if one.box.area]


class _VisionBackend(EndpointBackend[TextToBboxInput]):
    """Asks a vision model that can locate objects."""

    async def run(self, workspace: Workspace, given: TextToBboxInput) -> Made:
        """Ask the model for boxes."""
        client = self.client()
        picture = await load_picture(self.equipment, workspace, given.image)
        sent = await self.equipment.in_thread(to_send, picture)
        width, height = map(str, sent.size)
        number = "List only the best one." if given.top1 else "List every one."
        prompt = render("ground.md", text=given.text, number=number, width=width, height=height)
        answer = await client.chat(prompt, [sent.picture])
        found = parse_reply(answer.text, sent.size, picture.size)
        boxes = text(format_boxes(found, top1=given.top1))
        return Made((boxes,), backend=client.endpoint.label(answer.model))


class DetectorBackend(ToolBackend[TextToBboxInput]):
    """The offline detector of 80 classes."""

    name = "detector"

    def check(self) -> Availability:
        """Return whether the detector works here."""
        return check_objects(self.equipment)

    async def run(self, workspace: Workspace, given: TextToBboxInput) -> Made:
        """Find the objects of the described class."""
        path, data = await read_input(self.equipment, workspace, given.image)
        floor = FAINT if given.top1 else SURE
        found = await find_described(self.equipment, data, path, given.text, floor=floor)
        located = [Located(one.box, one.score) for one in found]
        return Made((text(format_boxes(located, top1=given.top1)),), backend=self.label)


class TextToBbox(BackedTool[TextToBboxInput]):
    """Locates an object."""

    name = "TextToBbox"
    category = "perception"
    description = "The tool can detect the object location according to description."
    version = "1"
    input_type = TextToBboxInput
    outputs = (
        Parameter(
            type="text",
            description="Detected objects, include bbox in (x1, y1, x2, y2) format, "
            "and detection score.",
        ),
    )
    backends = (_VisionBackend, DetectorBackend)
