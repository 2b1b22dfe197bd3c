"""ImageDescription: what an image shows, in words."""

from gta_bench.confine.workspace import Workspace
from gta_bench.tools.backends import composed
from gta_bench.tools.backends.choice import BackedTool, ToolBackend
from gta_bench.tools.backends.pictures import open_picture, read
from gta_bench.tools.backends.vision import EndpointBackend
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, text
from gta_bench.tools.prompts import render


class ImageDescriptionInput(ToolInput):
    """The image to describe."""

    image: ImagePath


class VisionBackend(EndpointBackend[ImageDescriptionInput]):
    """A vision model describes the image."""

    async def run(self, workspace: Workspace, given: ImageDescriptionInput) -> Made:
        """Ask the model."""
        picture = await open_picture(self.equipment, workspace, given.image)
        return await self.ask(render("describe.md"), picture)


class ComposedBackend(ToolBackend[ImageDescriptionInput]):
    """Findings of small offline models."""

    name = "detector"

    def check(self) -> Availability:
        """Whether detector and OCR are here."""
        return composed.check(self.equipment)

    async def run(self, workspace: Workspace, given: ImageDescriptionInput) -> Made:
        """Collect the findings."""
        path, data = await read(self.equipment, workspace, given.image)
        said = await composed.compose(self.equipment, data, path)
        return Made((text(said),), backend=self.label)


class ImageDescription(BackedTool[ImageDescriptionInput]):
    """An image in words."""

    name = "ImageDescription"
    category = "perception"
    description = "A useful tool that returns a brief description of the input image."
    version = "1"
    input_type = ImageDescriptionInput
    backends = (VisionBackend, ComposedBackend)
