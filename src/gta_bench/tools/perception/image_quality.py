"""ImageQualityTest: how sharp an image is, by the variance of its Laplacian."""

from typing import TYPE_CHECKING

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
from gta_bench.tools.packages import find_missing, name_and_version

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL.Image import Image

BLURRY_BELOW = 100.0  # upstream's threshold
# OpenCV's weights of red, green and blue in fifteen bits; Pillow's differ in a few pixels.
RED, GREEN, BLUE, HALF, BITS = 9798, 19235, 3735, 1 << 14, 15
BAND = 512  # rows at a time, so that a large image does not take a gigabyte


class ImageQualityTestInput(ToolInput):
    """An image."""

    image: ImagePath = Field(description="The input image file.")


class ImageQualityTest(Tool[ImageQualityTestInput]):
    """Returns the variance of the Laplacian, and whether the image is blurry by it."""

    name = "ImageQualityTest"
    category = "perception"
    description = (
        "This tool evaluates image quality by calculating the Laplacian variance, which is a "
        "proxy for image sharpness."
    )
    version = "1"
    input_type = ImageQualityTestInput

    def check(self) -> Availability:
        """It needs numpy, and Pillow to read the image."""
        return find_missing("numpy", "PIL") or Available(name_and_version("numpy"))

    async def apply(self, workspace: Workspace, given: ImageQualityTestInput) -> Made:
        """Measure off the event loop."""
        try:
            variance = await self.equipment.in_thread(_measure, workspace, given.image)
        except ToolError as exc:
            raise ToolError(f"ImageQualityTest: {exc}") from exc
        result = f"Laplacian variance: {variance:.2f}, Blurry: {variance < BLURRY_BELOW}"
        return Made((text(result),), backend=name_and_version("numpy"))


def _measure(workspace: Workspace, image: str) -> float:
    from gta_bench.tools.pictures import open_picture

    return measure_sharpness(open_picture(workspace, image).image.convert("RGB"))


def measure_sharpness(image: "Image") -> float:
    """Return `cv2.Laplacian(cv2.cvtColor(image, COLOR_RGB2GRAY), CV_64F).var()`, to the digit."""
    import numpy as np

    bordered = np.pad(_to_gray(image), 1, mode="reflect")
    height, width = bordered.shape[0] - 2, bordered.shape[1] - 2
    total, squares = 0, 0
    for top in range(0, height, BAND):
        band = bordered[top : min(top + BAND, height) + 2].astype(np.int64)
        laplacian = (
            band[:-2, 1:-1] + band[2:, 1:-1] + band[1:-1, :-2] + band[1:-1, 2:]
        ) - 4 * band[1:-1, 1:-1]
        total += int(laplacian.sum())
        squares += int((laplacian * laplacian).sum())
    count: int = height * width
    return float((squares * count - total * total) / (count * count))


def _to_gray(image: "Image") -> "npt.NDArray[np.uint8]":
    import numpy as np

    colors = np.asarray(image)
    gray = np.empty(colors.shape[:2], dtype=np.uint8)
    for top in range(0, len(colors), BAND):
        band = colors[top : top + BAND].astype(np.int32)
        mixed = band[..., 0] * RED + band[..., 1] * GREEN + band[..., 2] * BLUE + HALF
        gray[top : top + BAND] = mixed >> BITS
    return gray
