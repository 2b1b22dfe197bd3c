"""Pictures of the workspace, decoded and in a format that every document program reads."""

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
SMALL_BYTES: Final = 4 << 20  # used unchanged, regardless of its resolution
LONGEST_SIDE: Final = 2400  # 300 dpi over the width of a page
KEPT_FORMATS: Final = {"PNG": "image/png", "JPEG": "image/jpeg"}
SCREEN_DPI: Final = 96


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """A picture that can be decoded completely; the size is that of the original in pixels."""

    path: str
    data: bytes
    mime: str
    width: int
    height: int

    @property
    def suffix(self) -> str:
        """The usual suffix of the format."""
        return ".jpg" if self.mime == "image/jpeg" else ".png"

    @property
    def stem(self) -> str:
        """The file name without its suffix."""
        return PurePosixPath(self.path).stem

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height on a page, at the resolution of a screen."""
        return self.width / SCREEN_DPI, self.height / SCREEN_DPI


def read_pictures(
    workspace: Workspace, spellings: str | Sequence[str]
) -> tuple[DecodedPicture, ...]:
    """Read the pictures that an agent names (`a, b`). Raises ToolError if one is missing."""
    return tuple(read_picture(workspace, path) for path in workspace.resolve_images(spellings))


def read_picture(workspace: Workspace, path: str) -> DecodedPicture:
    """Read one picture by its portable path."""
    data = workspace.read(path, most_bytes=MOST_BYTES)
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
            return _prepare(path, data, image)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as exc:
        raise ToolError(f"`{path}` cannot be read as an image: {exc}.") from exc
    except Image.DecompressionBombError as exc:
        raise ToolError(
            f"`{path}` has too many pixels; at most {MOST_PIXELS} are allowed."
        ) from exc


def _prepare(path: str, data: bytes, image: Image.Image) -> DecodedPicture:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise ToolError(
            f"`{path}` has {width} by {height} pixels; at most {MOST_PIXELS} are allowed."
        )
    image.load()
    mime = KEPT_FORMATS.get(image.format or "")
    small = max(image.size) <= LONGEST_SIDE or len(data) <= SMALL_BYTES
    plain = image.mode in ("L", "RGB", "RGBA", "P", "1") and image.info.get("exif") is None
    if mime is not None and small and plain:
        return DecodedPicture(path, data, mime, width, height)
    upright = ImageOps.exif_transpose(image)
    encoded = _encode(upright, photo=mime == "image/jpeg")
    return DecodedPicture(path, encoded, mime or "image/png", *upright.size)


def _encode(image: Image.Image, *, photo: bool) -> bytes:
    """Encode without metadata, and no larger than a page can show."""
    transparent = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    plain = image.convert("RGBA" if transparent and not photo else "RGB")
    plain.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    stream = io.BytesIO()
    plain.save(stream, "JPEG" if photo else "PNG", **({"quality": 90} if photo else {}))
    return stream.getvalue()
