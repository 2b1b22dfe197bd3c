"""Pictures that tools are given: decoded by content, never by name, and only up to a size."""

import io
from typing import TYPE_CHECKING, NamedTuple

from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.backends.client import EncodedImage
from gta_bench.tools.contract import Equipment

if TYPE_CHECKING:
    from PIL.Image import Image

# No format that runs a program (EPS) or that only a plugin reads.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "MPO": ".jpg", "WEBP": ".webp", "GIF": ".gif"}
MOST_PIXELS = 60_000_000
# Providers scale larger pictures down themselves, after a longer upload.
LONGEST_SENT = 2048


class Sent(NamedTuple):
    """A picture as it goes to an endpoint, and its size there."""

    picture: EncodedImage
    size: tuple[int, int]


def decode(data: bytes, path: str) -> "Image":
    """The picture in RGB, transparency on white; a ToolError for anything else."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise ToolError(
                    f"`{path}` has {opened.width} x {opened.height} pixels; "
                    f"at most {MOST_PIXELS} are read."
                )
            return _rgb(opened)
    except UnidentifiedImageError as exc:
        raise ToolError(f"`{path}` is not an image ({', '.join(FORMATS).lower()}).") from exc
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as exc:
        raise ToolError(f"`{path}` has more than {MOST_PIXELS} pixels.") from exc
    except (OSError, SyntaxError, ValueError, EOFError) as exc:  # what Pillow raises on damage
        raise ToolError(f"`{path}` is a damaged image.") from exc


def _rgb(opened: "Image") -> "Image":
    from PIL import Image

    opened.load()
    if opened.mode not in ("RGBA", "LA", "PA") and "transparency" not in opened.info:
        return opened.convert("RGB")
    picture = opened.convert("RGBA")
    paper = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(paper, picture).convert("RGB")


def encode(picture: "Image") -> bytes:
    """The picture as PNG."""
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def shrunk(picture: "Image", longest: int) -> "Image":
    """The picture, its longer side at most that long."""
    from PIL import Image, ImageOps

    if max(picture.size) <= longest:
        return picture
    return ImageOps.contain(picture, (longest, longest), Image.Resampling.LANCZOS)


def to_send(picture: "Image") -> Sent:
    """The picture for an endpoint: PNG, scaled down to what models look at."""
    picture = shrunk(picture, LONGEST_SENT)
    return Sent(EncodedImage(encode(picture), "image/png"), picture.size)


async def read(equipment: Equipment, workspace: Workspace, spelling: str) -> tuple[str, bytes]:
    """A file's portable path and content, read off the event loop."""

    def work() -> tuple[str, bytes]:
        path = workspace.resolve(spelling)
        return path, workspace.read(path)

    return await equipment.in_thread(work)


async def open_picture(equipment: Equipment, workspace: Workspace, spelling: str) -> "Image":
    """A file of the workspace as a picture, decoded off the event loop."""
    path, data = await read(equipment, workspace, spelling)
    return await equipment.in_thread(decode, data, path)


async def keep(equipment: Equipment, workspace: Workspace, name: str, data: bytes) -> OutputFile:
    """Write an image that a backend made, under a suffix that tells its format."""

    def work() -> OutputFile:
        from PIL import Image

        decode(data, "the backend's reply")
        with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            suffix = SUFFIXES.get(str(opened.format))
        if suffix is None:
            return workspace.write(name, encode(decode(data, name)), suffix=".png")
        return workspace.write(name, data, suffix=suffix)

    return await equipment.in_thread(work)
