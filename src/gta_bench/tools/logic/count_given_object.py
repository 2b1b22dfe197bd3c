"""CountGivenObject: how many of an object an image shows."""

import re

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.boxes import parse_box
from gta_bench.tools.backends.choice import BackedTool, EndpointBackend, ToolBackend
from gta_bench.tools.backends.detection import SURE, find_described
from gta_bench.tools.backends.local import check_objects
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, text
from gta_bench.tools.pictures import decode, load_picture, read_input
from gta_bench.tools.prompts import render

WHOLE = re.compile(r"(?<![\d-])(?<!\d[.,])\d{1,6}(?!\d|[.,]\d)")


class CountInput(ToolInput):
    """An image, the object to count, and where to look if not everywhere."""

    image: ImagePath
    text: str = Field(description="The object description in English.")
    bbox: str | None = Field(
        None, description="Optional bounding box `(x1, y1, x2, y2)` to focus on a sub-region."
    )


def parse_count(reply: str, what: str) -> int:
    """Return the number in a model's reply; raises ToolError for none or several."""
    numbers = {int(number) for number in WHOLE.findall(reply)}
    if len(numbers) != 1:
        raise ToolError(f"The model could not count {what[:80]!r}: it replied {reply[:80]!r}.")
    return numbers.pop()


class _VisionBackend(EndpointBackend[CountInput]):
    """Asks a vision model."""

    async def run(self, workspace: Workspace, given: CountInput) -> Made:
        """Ask the model for a number."""
        picture = await load_picture(self.equipment, workspace, given.image)
        if given.bbox is not None:
            box = parse_box(given.bbox, picture.size)
            picture = await self.equipment.in_thread(picture.crop, box)
        made = await self.ask(render("count.md", text=given.text), picture)
        number = parse_count(made.parts[0].content, given.text)
        return Made((text(str(number)),), backend=made.backend)


class _DetectorBackend(ToolBackend[CountInput]):
    """The offline detector of 80 classes."""

    name = "detector"

    def check(self) -> Availability:
        """Return whether the detector works here."""
        return check_objects(self.equipment)

    async def run(self, workspace: Workspace, given: CountInput) -> Made:
        """Count the objects of the described class; with a box, those whose center is inside.

        The detector always sees the whole image, because it misses more in a part of it.
        """
        path, data = await read_input(self.equipment, workspace, given.image)
        found = await find_described(self.equipment, data, path, given.text, floor=SURE)
        if given.bbox is not None:
            picture = await self.equipment.in_thread(decode, data, path)
            region = parse_box(given.bbox, picture.size)
            found = [one for one in found if region.has(one.box.center)]
        return Made((text(str(len(found))),), backend=self.label)


class CountGivenObject(BackedTool[CountInput]):
    """Counts an object."""

    name = "CountGivenObject"
    category = "logic"
    description = "The tool can count the number of a certain object in the image."
    version = "1"
    input_type = CountInput
    outputs = (Parameter(type="int"),)
    backends = (_VisionBackend, _DetectorBackend)
