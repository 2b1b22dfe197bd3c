"""Pictures of a workspace: opened within bounds, and kept in the type they came in."""

import io
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from PIL import Image, UnidentifiedImageError

from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolError

READ = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
MOST_PIXELS = 50_000_000

SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}
OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {},
    "JPEG": {"quality": 95, "subsampling": 0},
    "WEBP": {"quality": 95},
}
# What a viewer needs to show the changed picture as it would show the original.
CARRIED = ("icc_profile", "exif", "dpi")


@dataclass(frozen=True)
class _Picture:
    """Pixels in RGB or RGBA, and what is needed to keep them as they came."""

    image: Image.Image
    format: str
    name: str
    about: dict[str, Any]


def open_picture(workspace: Workspace, spelling: str) -> _Picture:
    """The first frame of an image of the workspace."""
    path = workspace.resolve(spelling)
    try:
        with Image.open(io.BytesIO(workspace.read(path)), formats=READ) as opened:
            _check_size(opened, path)
            about = {key: opened.info[key] for key in CARRIED if opened.info.get(key)}
            kind = opened.format or "PNG"
            return _Picture(_in_colour(opened), kind, PurePosixPath(path).stem, about)
    except UnidentifiedImageError as exc:
        raise ToolError(f"`{path}` is not an image ({', '.join(READ)}).") from exc
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as exc:
        raise ToolError(f"`{path}` cannot be read as an image: {exc}.") from exc


def save_picture(
    workspace: Workspace, picture: _Picture, image: Image.Image, *, name: str
) -> OutputFile:
    """Write changed pixels in the picture's type; types without true colour become PNG."""
    kind = picture.format if picture.format in SUFFIXES else "PNG"
    if kind == "JPEG":
        image = image.convert("RGB")
    stream = io.BytesIO()
    image.save(stream, format=kind, **OPTIONS[kind], **picture.about)
    stem = name
    for suffix in (*SUFFIXES.values(), ".jpeg"):
        stem = stem.removesuffix(suffix)
    return workspace.write(f"{stem}{SUFFIXES[kind]}", stream.getvalue(), suffix=SUFFIXES[kind])


def _check_size(image: Image.Image, path: str) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise ToolError(f"`{path}` has {width} x {height} pixels; at most {MOST_PIXELS} are read.")


def _in_colour(image: Image.Image) -> Image.Image:
    """True colour, with transparency only where there is some."""
    if image.mode.startswith("I;16"):  # Pillow would clip 16 bits at 255
        return image.point(lambda value: value / 256).convert("L").convert("RGB")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")
