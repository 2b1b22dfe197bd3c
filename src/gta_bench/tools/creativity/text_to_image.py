"""TextToImage: an image made from keywords."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.choice import BackedTool, EndpointBackend
from gta_bench.tools.contract import Made, ToolInput, file_part
from gta_bench.tools.pictures import save_image


class TextToImageInput(ToolInput):
    """What the image should show."""

    keywords: str = Field(description="A series of keywords separated by comma.")


class ImagesBackend(EndpointBackend[TextToImageInput]):
    """An endpoint that generates images. There is no offline backend, because none is small."""

    async def run(self, workspace: Workspace, given: TextToImageInput) -> Made:
        """Have the image generated and save it."""
        if not given.keywords.strip():
            raise ToolError("TextToImage needs keywords, such as `blue whale, sea`.")
        client = self.client()
        data = await client.generate_image(given.keywords)
        output = await save_image(self.equipment, workspace, "generated_image", data)
        return Made((file_part("image", output),), backend=client.endpoint.label())


class TextToImage(BackedTool[TextToImageInput]):
    """Generates an image."""

    name = "TextToImage"
    category = "creativity"
    description = "This tool can generate an image according to the input text."
    version = "1"
    input_type = TextToImageInput
    outputs = (Parameter(type="image"),)
    backends = (ImagesBackend,)
