"""OCR: the lines of text on an image, each with its box."""

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.choice import BackedTool, ToolBackend
from gta_bench.tools.backends.local import check_text, read_text
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, text
from gta_bench.tools.pictures import read_input

NOTHING = "No text found."


class OCRInput(ToolInput):
    """The image to read."""

    image: ImagePath


class RapidOcrBackend(ToolBackend[OCRInput]):
    """RapidOCR, whose package includes its models."""

    name = "rapidocr"

    def check(self) -> Availability:
        """Return whether the packages are installed."""
        return check_text()

    async def run(self, workspace: Workspace, given: OCRInput) -> Made:
        """Return a line with box and text for each line on the image."""
        path, data = await read_input(self.equipment, workspace, given.image)
        lines = await read_text(data, path)
        found = "\n".join(f"{line.box} {line.text}" for line in lines)
        return Made((text(found or NOTHING),), backend=self.label)


class OCR(BackedTool[OCRInput]):
    """Reads the text on an image."""

    name = "OCR"
    category = "perception"
    description = "This tool can recognize all text on the input image."
    version = "1"
    input_type = OCRInput
    outputs = (
        Parameter(
            type="text",
            description="OCR results, include bbox in x1, y1, x2, y2 format and the recognized "
            "text.",
        ),
    )
    backends = (RapidOcrBackend,)
