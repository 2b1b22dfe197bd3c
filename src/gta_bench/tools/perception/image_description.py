"""ImageDescription: a description of an image."""

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.backends import composed
from gta_bench.tools.backends.choice import BackedTool, EndpointBackend, ToolBackend
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, text
from gta_bench.tools.pictures import load_picture, read_input
from gta_bench.tools.prompts import render


class ImageDescriptionInput(ToolInput):
    """The image to describe."""

    image: ImagePath


class VisionBackend(EndpointBackend[ImageDescriptionInput]):
    """A vision model describes the image."""

    async def run(self, workspace: Workspace, given: ImageDescriptionInput) -> Made:
        """Ask the model."""
        picture = await load_picture(self.equipment, workspace, given.image)
        return await self.ask(render("describe.md"), picture)


class ComposedBackend(ToolBackend[ImageDescriptionInput]):
    """Describes the image by the findings of small offline models."""

    name = "detector"

    def check(self) -> Availability:
        """Return whether the detector and OCR work here."""
        return composed.check(self.equipment)

    async def run(self, workspace: Workspace, given: ImageDescriptionInput) -> Made:
        """Collect the findings."""
        path, data = await read_input(self.equipment, workspace, given.image)
        findings = await composed.compose(self.equipment, data, path)
        return Made((text(findings),), backend=self.label)


class ImageDescription(BackedTool[ImageDescriptionInput]):
    """Describes an image."""

    name = "ImageDescription"
    category = "perception"
    description = "A useful tool that returns a brief description of the input image."
    version = "1"
    input_type = ImageDescriptionInput
    backends = (VisionBackend, ComposedBackend)
