"""ImageQualityTest: how sharp an image is, by the variance of its Laplacian."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.contract import (
    Availability,
    Available,
    ImagePath,
    Made,
    Tool,
    ToolInput,
    text,
)
from gta_bench.tools.packages import missing, name_and_version

BLURRY_BELOW = 100.0  # upstream's threshold


class ImageQualityTestInput(ToolInput):
    """An image."""

    image: ImagePath = Field(description="The input image file.")


class ImageQualityTest(Tool[ImageQualityTestInput]):
    """Tells the variance of the Laplacian and whether that is blurry."""

    name = "ImageQualityTest"
    category = "perception"
    description = (
        "This tool evaluates image quality by calculating the Laplacian variance, which is a "
        "proxy for image sharpness."
    )
    version = "1"
    input_type = ImageQualityTestInput

    def check(self) -> Availability:
        """numpy, and Pillow to read the image."""
        return (
            missing("numpy", "numpy")
            or missing("pillow", "PIL")
            or Available(name_and_version("numpy"))
        )

    async def apply(self, workspace: Workspace, given: ImageQualityTestInput) -> Made:
        """Measure off the event loop."""
        try:
            variance = await self.equipment.in_thread(_measure, workspace, given.image)
        except ToolError as exc:
            raise ToolError(f"ImageQualityTest: {exc}") from exc
        words = f"Laplacian variance: {variance:.2f}, Blurry: {variance < BLURRY_BELOW}"
        return Made((text(words),), backend=name_and_version("numpy"))


def _measure(workspace: Workspace, image: str) -> float:
    from gta_bench.tools.perception.sharpness import laplacian_variance
    from gta_bench.tools.pictures import open_picture

    return laplacian_variance(open_picture(workspace, image).image.convert("RGB"))
