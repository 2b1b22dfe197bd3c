"""ImageStylization: an image changed as an instruction says.

The offline network came without names for its styles. The names below describe what they look like
on photographs; style 19 was trained on Starry Night and style 24 on the Great Wave, as is easy to
see. An instruction counts only if it asks for a style and nothing else: the network cannot add,
remove or change objects.
"""

import re
from typing import NamedTuple

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.choice import BackedTool, EndpointBackend, ToolBackend
from gta_bench.tools.backends.local import check_styles, stylize
from gta_bench.tools.contract import Availability, ImagePath, Made, ToolInput, file_part
from gta_bench.tools.pictures import load_picture, read_input, save_image, to_send

OUTPUT = "stylized_image"


class Style(NamedTuple):
    """A style of the network: its number, its looks, and the words that ask for it."""

    number: int
    looks: str
    words: tuple[str, ...]


STYLES = (
    Style(1, "thick black outlines, flat colors", ("cartoon", "comic", "comics", "pop art")),
    Style(3, "bright strokes on black", ("abstract", "abstract art", "abstract expressionism")),
    Style(5, "broken strokes of oil", ("oil", "oil painting", "oil paint", "expressionist")),
    Style(8, "colored pencil on white", ("sketch", "pencil", "pencil sketch", "colored pencil")),
    Style(11, "ink lines on warm paper", ("ink drawing", "pen and ink", "etching", "engraving")),
    Style(12, "soft light in pastel", ("monet", "claude monet", "impressionist", "pastel")),
    Style(14, "pale washes", ("watercolor", "aquarelle", "ink wash", "chinese", "chinese ink")),
    Style(15, "colored glass in lead", ("stained glass", "mosaic")),
    Style(16, "long strokes of crayon", ("crayon", "munch", "edvard munch")),
    Style(17, "woven blocks", ("geometric", "geometrical")),
    Style(18, "carved wood", ("woodcut", "relief", "wood carving")),
    Style(19, "swirls in blue and yellow", ("van gogh", "vincent van gogh", "starry night")),
    Style(21, "hard shapes with black edges", ("picasso", "pablo picasso", "cubist", "cubism")),
    Style(24, "woodblock print in dark blue", ("ukiyo-e", "ukiyoe", "hokusai", "woodblock print")),
)
SPELLINGS = {
    "watercolour": "watercolor",
    "water color": "watercolor",
    "water colour": "watercolor",  # codespell:ignore
    "coloured": "colored",  # codespell:ignore
    "impressionism": "impressionist",
    "impressionistic": "impressionist",
    "cartoonish": "cartoon",
    "ukiyo e": "ukiyo-e",
    "pen-and-ink": "pen and ink",
}
# Words that may surround a style without asking for more.
FILLING = (
    "a an and apply art artist artwork as by change classic classical convert drawing effect "
    "famous filter give image in into is it like look looks make of on one paint painter "
    "painting photo photograph picture please print render s style styled stylise stylize "
    "that the this to traditional transform turn use using version with"
)
WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


def find_style(instruction: str) -> Style:
    """Return the style that an instruction asks for; raises ToolError with the choices."""
    words = " ".join(WORD.findall(instruction.casefold()))
    for other, ours in SPELLINGS.items():
        words = re.sub(rf"\b{re.escape(other)}\b", ours, words)
    wishes = [(word, style) for style in STYLES for word in style.words if _has(words, word)]
    if not wishes:
        raise ToolError(f"No offline style fits {instruction[:80]!r}. {_offer()}")
    word, style = max(wishes, key=lambda wish: len(wish[0]))
    rest = re.sub(rf"\b{re.escape(word)}\b", " ", words).split()
    more = [other for other in rest if other not in FILLING.split()]
    if more:
        raise ToolError(
            f"Offline, a picture can be given a style and nothing more; {' '.join(more)[:80]!r} "
            f"asks for more. {_offer()}"
        )
    return style


def _has(words: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", words) is not None


def _offer() -> str:
    known = ", ".join(style.words[0] for style in STYLES)
    return f"Styles: {known}. Write `convert to NAME style`."


class ImageStylizationInput(ToolInput):
    """An image and the instruction to change it."""

    image: ImagePath
    instruction: str


class EditsBackend(EndpointBackend[ImageStylizationInput]):
    """An endpoint that edits images."""

    async def run(self, workspace: Workspace, given: ImageStylizationInput) -> Made:
        """Have the image edited and save the result."""
        if not given.instruction.strip():
            raise ToolError("ImageStylization needs an instruction.")
        client = self.client()
        picture = await load_picture(self.equipment, workspace, given.image)
        sent = await self.equipment.in_thread(to_send, picture)
        data = await client.edit_image(given.instruction, sent.picture)
        output = await save_image(self.equipment, workspace, OUTPUT, data)
        return Made((file_part("image", output),), backend=client.endpoint.label())


class StyleTransferBackend(ToolBackend[ImageStylizationInput]):
    """Magenta's style transfer: a few styles, offline, for instructions that ask for one."""

    name = "style-transfer"

    def check(self) -> Availability:
        """Return whether the network is installed."""
        return check_styles(self.equipment)

    async def run(self, workspace: Workspace, given: ImageStylizationInput) -> Made:
        """Repaint the image in the style that the instruction names."""
        style = find_style(given.instruction)
        path, data = await read_input(self.equipment, workspace, given.image)
        painted = await stylize(self.equipment, data, path, style=style.number)
        output = await save_image(self.equipment, workspace, OUTPUT, painted)
        backend = f"{self.label}, style {style.number}: {style.looks}"
        return Made((file_part("image", output),), backend=backend)


class ImageStylization(BackedTool[ImageStylizationInput]):
    """Changes an image."""

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
