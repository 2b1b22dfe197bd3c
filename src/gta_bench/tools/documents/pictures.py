"""Pictures of the workspace, checked and in a form that every document program takes."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError

MOST_PIXELS: Final = 50_000_000
MOST_BYTES: Final = 32 << 20
SMALL_BYTES: Final = 4 << 20  # used as it is, however many points it has
LONGEST_SIDE: Final = 2400  # 300 dots an inch over the width of a page
KEPT_AS_THEY_ARE: Final = {"PNG": "image/png", "JPEG": "image/jpeg"}
SCREEN_DPI: Final = 96


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """A picture that was decoded once, so it is whole; sizes in pixels of the original."""

    path: str
    data: bytes
    mime: str
    width: int
    height: int

    @property
    def suffix(self) -> str:
        """The usual ending of the format."""
        return ".jpg" if self.mime == "image/jpeg" else ".png"

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return PurePosixPath(self.path).stem

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height on a page, as on a screen."""
        return self.width / SCREEN_DPI, self.height / SCREEN_DPI


def read_pictures(
    workspace: Workspace, spellings: str | Sequence[str]
) -> tuple[DecodedPicture, ...]:
    """The pictures an agent names, `a, b`; one that is not there is a ToolError with its name."""
    return tuple(read_picture(workspace, path) for path in workspace.resolve_images(spellings))


def read_picture(workspace: Workspace, path: str) -> DecodedPicture:
    """One picture by its portable path."""
    data = workspace.read(path, most_bytes=MOST_BYTES)
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
            return _prepared(path, data, image)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as exc:
        raise ToolError(f"`{path}` cannot be read as an image: {exc}.") from exc
    except Image.DecompressionBombError as exc:
        raise ToolError(f"`{path}` has too many pixels; at most {MOST_PIXELS} are drawn.") from exc


def _prepared(path: str, data: bytes, image: Image.Image) -> DecodedPicture:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise ToolError(
            f"`{path}` has {width} by {height} pixels; at most {MOST_PIXELS} are drawn."
        )
    image.load()
    mime = KEPT_AS_THEY_ARE.get(image.format or "")
    small = max(image.size) <= LONGEST_SIDE or len(data) <= SMALL_BYTES
    plain = image.mode in ("L", "RGB", "RGBA", "P", "1") and image.info.get("exif") is None
    if mime is not None and small and plain:
        return DecodedPicture(path, data, mime, width, height)
    upright = ImageOps.exif_transpose(image)
    encoded = _encoded(upright, photo=mime == "image/jpeg")
    return DecodedPicture(path, encoded, mime or "image/png", *upright.size)


def _encoded(image: Image.Image, *, photo: bool) -> bytes:
    """Again, without what is not the picture, and no larger than a page can show."""
    see_through = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    plain = image.convert("RGBA" if see_through and not photo else "RGB")
    plain.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    stream = io.BytesIO()
    plain.save(stream, "JPEG" if photo else "PNG", **({"quality": 90} if photo else {}))
    return stream.getvalue()
