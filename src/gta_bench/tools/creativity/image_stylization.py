"""ImageStylization: an image changed after an instruction."""

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.choice import BackedTool, ToolBackend
from gta_bench.tools.backends.local import check_styles, stylize
from gta_bench.tools.backends.pictures import keep, open_picture, read, to_send
from gta_bench.tools.backends.styles import style_of
from gta_bench.tools.backends.vision import EndpointBackend
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, file_part

OUTPUT = "stylized_image"


class ImageStylizationInput(ToolInput):
    """An image and what to make of it."""

    image: ImagePath
    instruction: str


class EditsBackend(EndpointBackend[ImageStylizationInput]):
    """An endpoint that edits images."""

    async def run(self, workspace: Workspace, given: ImageStylizationInput) -> Made:
        """Have the image edited and keep the result."""
        if not given.instruction.strip():
            raise ToolError("ImageStylization needs an instruction.")
        client = self.client()
        picture = await open_picture(self.equipment, workspace, given.image)
        sent = await self.equipment.in_thread(to_send, picture)
        data = await client.edit_image(given.instruction, sent.picture)
        output = await keep(self.equipment, workspace, OUTPUT, data)
        return Made((file_part("image", output),), backend=client.endpoint.label())


class StyleTransferBackend(ToolBackend[ImageStylizationInput]):
    """Magenta's style transfer: a few styles, offline, for instructions that ask for one."""

    name = "style-transfer"

    def check(self) -> Availability:
        """Whether the network is here."""
        return check_styles(self.equipment)

    async def run(self, workspace: Workspace, given: ImageStylizationInput) -> Made:
        """Paint the image over in the style that the instruction names."""
        style = style_of(given.instruction)
        path, data = await read(self.equipment, workspace, given.image)
        painted = await stylize(self.equipment, data, path, style=style.number)
        output = await keep(self.equipment, workspace, OUTPUT, painted)
        backend = f"{self.label}, style {style.number}: {style.looks}"
        return Made((file_part("image", output),), backend=backend)


class ImageStylization(BackedTool[ImageStylizationInput]):
    """An image in another manner."""

    name = "ImageStylization"
    category = "creativity"
    description = (
        "This tool can modify the input image according to the input instruction. Here are some "
        'example instructions: "turn him into cyborg", "add fireworks to the sky", "make his '
        'jacket out of leather".'
    )
    version = "1"
    input_type = ImageStylizationInput
    outputs = (Parameter(type="image"),)
    backends = (EditsBackend, StyleTransferBackend)
