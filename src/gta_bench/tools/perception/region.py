"""RegionAttributeDescription: an attribute of one region of an image."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.backends import composed
from gta_bench.tools.backends.boxes import parse_box
from gta_bench.tools.backends.choice import BackedTool, EndpointBackend, ToolBackend
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, text
from gta_bench.tools.pictures import encode, load_picture
from gta_bench.tools.prompts import render


class RegionInput(ToolInput):
    """An image, a box in it, and the attribute that is asked for."""

    image: ImagePath
    bbox: str = Field(description="The bbox coordinate in the format of `(x1, y1, x2, y2)`")
    attribute: str = Field(description="The attribute to describe")


class _VisionBackend(EndpointBackend[RegionInput]):
    """A vision model looks at the region."""

    async def run(self, workspace: Workspace, given: RegionInput) -> Made:
        """Ask the model about the part inside the box."""
        picture = await load_picture(self.equipment, workspace, given.image)
        prompt = render("region.md", attribute=given.attribute)
        box = parse_box(given.bbox, picture.size)
        return await self.ask(prompt, await self.equipment.in_thread(picture.crop, box))


class _ComposedBackend(ToolBackend[RegionInput]):
    """Describes the region by the findings of small offline models."""

    name = "detector"

    def check(self) -> Availability:
        """Return whether the detector and OCR work here."""
        return composed.check(self.equipment)

    async def run(self, workspace: Workspace, given: RegionInput) -> Made:
        """Collect the findings; the agent has to find the answer in them."""
        picture = await load_picture(self.equipment, workspace, given.image)
        box = parse_box(given.bbox, picture.size)
        region = await self.equipment.in_thread(picture.crop, box)
        data = await self.equipment.in_thread(encode, region)
        findings = await composed.compose(self.equipment, data, "the region")
        return Made((text(findings),), backend=self.label)


class RegionAttributeDescription(BackedTool[RegionInput]):
    """Describes an attribute of a region."""

    name = "RegionAttributeDescription"
    category = "perception"
    description = "Describe the attribute of a region of the input image."
    version = "1"
    input_type = RegionInput
    backends = (_VisionBackend, _ComposedBackend)
