"""RegionAttributeDescription: an attribute of one region of an image, in words."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.backends import composed
from gta_bench.tools.backends.choice import BackedTool, ToolBackend
from gta_bench.tools.backends.detection import cut, cut_bytes
from gta_bench.tools.backends.pictures import open_picture
from gta_bench.tools.backends.vision import EndpointBackend
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, text
from gta_bench.tools.prompts import render


class RegionInput(ToolInput):
    """An image, a box in it, and what is asked about it."""

    image: ImagePath
    bbox: str = Field(description="The bbox coordinate in the format of `(x1, y1, x2, y2)`")
    attribute: str = Field(description="The attribute to describe")


class _VisionBackend(EndpointBackend[RegionInput]):
    """A vision model looks at the region."""

    async def run(self, workspace: Workspace, given: RegionInput) -> Made:
        """Ask the model about the part inside the box."""
        picture = await open_picture(self.equipment, workspace, given.image)
        prompt = render("region.md", attribute=given.attribute)
        region = await self.equipment.in_thread(cut, picture, given.bbox)
        return await self.ask(prompt, region)


class _ComposedBackend(ToolBackend[RegionInput]):
    """Findings of small offline models about the region."""

    name = "detector"

    def check(self) -> Availability:
        """Whether detector and OCR are here."""
        return composed.check(self.equipment)

    async def run(self, workspace: Workspace, given: RegionInput) -> Made:
        """Collect the findings; which of them answers the question is left to the agent."""
        picture = await open_picture(self.equipment, workspace, given.image)
        data = await self.equipment.in_thread(cut_bytes, picture, given.bbox)
        said = await composed.compose(self.equipment, data, "the region")
        return Made((text(said),), backend=self.label)


class RegionAttributeDescription(BackedTool[RegionInput]):
    """An attribute of a region."""

    name = "RegionAttributeDescription"
    category = "perception"
    description = "Describe the attribute of a region of the input image."
    version = "1"
    input_type = RegionInput
    backends = (_VisionBackend, _ComposedBackend)
