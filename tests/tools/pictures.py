"""Pictures made for one test each."""

import io
from pathlib import Path

from PIL import Image

from gta_bench.confine.workspace import Workspace


def space_with(folder: Path, **images: Image.Image) -> Workspace:
    """A workspace whose inputs are these images, as PNG, named `NAME.png`."""
    attachments = {}
    for name, image in images.items():
        file = folder / f"{name}.png"
        image.save(file)
        attachments[f"inputs/{file.name}"] = file
    return Workspace.create(folder / "space", attachments)


def plain(width: int = 300, height: int = 200, color: str = "white") -> Image.Image:
    return Image.new("RGB", (width, height), color)


def read(workspace: Workspace, path: str) -> Image.Image:
    return Image.open(io.BytesIO(workspace.read(path)))


def changed(image: Image.Image, background: str = "white") -> tuple[int, int, int, int] | None:
    """The box of the pixels that are not the background."""
    from PIL import ImageChops

    ground = Image.new("RGB", image.size, background)
    return ImageChops.difference(image.convert("RGB"), ground).getbbox()
