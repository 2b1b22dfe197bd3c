"""Pictures: decoded by content and only up to a size, sent to models, edited and saved."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.backends.client import EncodedImage
from gta_bench.tools.contract import Equipment

if TYPE_CHECKING:
    from PIL.Image import Image

# No format that runs a program (EPS) or that only a plugin reads.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
MOST_PIXELS = 60_000_000
MOST_EDITED_PIXELS = 50_000_000
# Providers scale larger pictures down themselves, after a longer upload.
LONGEST_SENT = 2048
# Formats in which edited pictures are saved, and those in which pictures of backends are.
SAVED = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}
KEPT = {**SAVED, "MPO": ".jpg", "GIF": ".gif"}
OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {},
    "JPEG": {"quality": 95, "subsampling": 0},
    "WEBP": {"quality": 95},
}
# What a viewer needs to show the edited picture as it shows the original.
CARRIED = ("icc_profile", "exif", "dpi")


class Sent(NamedTuple):
    """A picture as an endpoint gets it, and its size there."""

    picture: EncodedImage
    size: tuple[int, int]


@dataclass(frozen=True)
class _Picture:
    """Pixels in RGB or RGBA, and what is needed to save them in the original format."""

    image: "Image"
    format: str
    name: str
    about: dict[str, Any]


@contextmanager
def _opened(data: bytes, path: str, most: int = MOST_PIXELS) -> Iterator["Image"]:
    """Open a picture; raises ToolError if it is too large, damaged or not a picture."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            width, height = opened.size
            if width * height > most:
                raise ToolError(f"`{path}` has {width} x {height} pixels; the limit is {most}.")
            yield opened
    except UnidentifiedImageError as exc:
        raise ToolError(f"`{path}` is not an image ({', '.join(FORMATS)}).") from exc
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as exc:
        raise ToolError(f"`{path}` has more than {most} pixels.") from exc
    except (OSError, SyntaxError, ValueError, EOFError) as exc:  # what Pillow raises on damage
        raise ToolError(f"`{path}` is damaged and cannot be read as an image.") from exc


def decode(data: bytes, path: str) -> "Image":
    """Return a picture in RGB, transparent parts on white; `path` names it in errors."""
    from PIL import Image

    with _opened(data, path) as opened:
        opened.load()
        if opened.mode not in ("RGBA", "LA", "PA") and "transparency" not in opened.info:
            return opened.convert("RGB")
        picture = opened.convert("RGBA")
        paper = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(paper, picture).convert("RGB")


def encode(picture: "Image") -> bytes:
    """Return the picture as PNG."""
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def shrink(picture: "Image", longest: int) -> "Image":
    """Return the picture, scaled down if its longer side has more pixels than that."""
    from PIL import Image, ImageOps

    if max(picture.size) <= longest:
        return picture
    return ImageOps.contain(picture, (longest, longest), Image.Resampling.LANCZOS)


def to_send(picture: "Image") -> Sent:
    """Return the picture for an endpoint: PNG, scaled down to what models look at."""
    picture = shrink(picture, LONGEST_SENT)
    return Sent(EncodedImage(encode(picture), "image/png"), picture.size)


async def read_input(
    equipment: Equipment, workspace: Workspace, spelling: str
) -> tuple[str, bytes]:
    """Return a file's portable path and content, read in a thread."""

    def work() -> tuple[str, bytes]:
        path = workspace.resolve(spelling)
        return path, workspace.read(path)

    return await equipment.in_thread(work)


async def load_picture(equipment: Equipment, workspace: Workspace, spelling: str) -> "Image":
    """Return a file of the workspace as a picture, decoded in a thread."""
    path, data = await read_input(equipment, workspace, spelling)
    return await equipment.in_thread(decode, data, path)


async def save_image(
    equipment: Equipment, workspace: Workspace, name: str, data: bytes
) -> OutputFile:
    """Write an image that a backend made, with the suffix of its format."""

    def work() -> OutputFile:
        decoded = decode(data, "the backend's reply")
        with _opened(data, "the backend's reply") as opened:
            suffix = KEPT.get(str(opened.format))
        if suffix is None:
            return workspace.write(name, encode(decoded), suffix=".png")
        return workspace.write(name, data, suffix=suffix)

    return await equipment.in_thread(work)


def open_picture(workspace: Workspace, spelling: str) -> _Picture:
    """Return the first frame of an image for editing; blocks."""
    path = workspace.resolve(spelling)
    with _opened(workspace.read(path), path, MOST_EDITED_PIXELS) as opened:
        about = {key: opened.info[key] for key in CARRIED if opened.info.get(key)}
        if opened.mode.startswith("I;16"):  # Pillow would clip 16 bits at 255
            image = opened.point(lambda value: value / 256).convert("L").convert("RGB")
        else:
            image = opened.convert("RGBA" if opened.has_transparency_data else "RGB")
        return _Picture(image, opened.format or "PNG", PurePosixPath(path).stem, about)


def save_picture(
    workspace: Workspace, picture: _Picture, image: "Image", *, name: str
) -> OutputFile:
    """Write an edited picture in its original format, or as PNG if that has no true color."""
    kind = picture.format if picture.format in SAVED else "PNG"
    if kind == "JPEG":
        image = image.convert("RGB")
    stream = io.BytesIO()
    image.save(stream, format=kind, **OPTIONS[kind], **picture.about)
    stem = name
    for suffix in (*SAVED.values(), ".jpeg"):
        stem = stem.removesuffix(suffix)
    return workspace.write(f"{stem}{SAVED[kind]}", stream.getvalue(), suffix=SAVED[kind])
