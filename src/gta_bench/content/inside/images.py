"""Inside the jail: the size of a picture, and previews of some of its frames."""

import base64
import io
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps, ImageSequence, IptcImagePlugin, UnidentifiedImageError

# No format that starts another program.
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "ICO", "PPM")
MOST_FRAMES = 10_000
FEW_COLORS = 4096
# Edges of letters have hundreds of colors; a palette of 256 looks the same at half the size.
TEXT_COLORS = 2048
PALETTE = 256
MOST_WORDS = 20_000
# The fields of a photograph that people write into.
WRITTEN = {0x010D: "DocumentName", 0x010E: "ImageDescription", 0x013B: "Artist",
           0x8298: "Copyright", 0x9C9B: "XPTitle", 0x9C9C: "XPComment", 0x9C9D: "XPAuthor",
           0x9C9E: "XPKeywords", 0x9C9F: "XPSubject"}  # fmt: skip
TAGS = re.compile(r"<[^<>]{0,5000}>")
USER_COMMENT = 0x9286
DETAILS = 0x8769


def prepare() -> dict[str, Any]:
    """Import the plugins; ignore Pillow's warnings about size, because we have our own limit."""
    Image.init()
    warnings.simplefilter("ignore")
    return {}


def finish(names: dict[str, Any]) -> str:
    """Return the picture as JSON, or why it is refused."""
    options = json.loads(Path("options.json").read_text(encoding="utf-8"))
    Image.MAX_IMAGE_PIXELS = None
    try:
        known = [name for name in FORMATS if name in Image.OPEN]
        with Image.open("file", formats=known) as image:
            if image.width * image.height > options["most_pixels"]:
                most = options["most_pixels"]
                return f"It has {image.width} x {image.height} pixels; at most {most} are read."
            return json.dumps(_read_content(image, options))
    except UnidentifiedImageError:
        return "It is not a picture in a supported format."


def _read_content(image: Image.Image, options: dict[str, Any]) -> dict[str, Any]:
    frames = min(getattr(image, "n_frames", 1), MOST_FRAMES)
    name, mode = image.format, image.mode
    decoded = min(frames, max(1, options["most_decoded"] // (image.width * image.height)))
    wanted = _choose_evenly(decoded, options["previews"])
    previews = list(_render_previews(image, wanted, options["longest_side"]))
    image.seek(0)
    shown = ImageOps.exif_transpose(image)
    return {
        "format": name,
        "mode": mode,
        "width": shown.width,
        "height": shown.height,
        "frames": frames,
        "previews": previews,
        "words": " ".join(_read_texts(image))[:MOST_WORDS],
    }


def _read_texts(image: Image.Image) -> Iterator[str]:
    """Yield text in the file besides the picture."""
    chunks = getattr(image, "text", {})  # of PNG
    yield from (_decode(value) for name, value in chunks.items() if name != "Software")
    if "comment" in image.info:
        yield _decode(image.info["comment"])
    packet = image.info.get("xmp")
    if packet:
        yield " ".join(TAGS.sub(" ", _decode(packet)).split())
    yield from (_decode(value) for value in _read_iptc(image))
    fields = image.getexif()
    yield from (_decode(fields[tag]) for tag in WRITTEN if tag in fields)
    more = fields.get_ifd(DETAILS)
    if USER_COMMENT in more:
        yield _decode(more[USER_COMMENT])


def _read_iptc(image: Any) -> Iterator[Any]:
    """Yield captions and keywords of news agencies (IPTC)."""
    for value in (IptcImagePlugin.getiptcinfo(image) or {}).values():
        yield from value if isinstance(value, list) else [value]


def _decode(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)
    head, code = value[8:], "utf-16" if value.startswith(b"UNICODE") else "utf-8"
    body = head if value[:8] in (b"ASCII\0\0\0", b"UNICODE\0", bytes(8)) else value
    if body.count(0) > len(body) // 3:
        code = "utf-16"
    return body.decode(code, "replace").replace("\0", "")


def _choose_evenly(frames: int, wanted: int) -> list[int]:
    """Choose frames at even distances, including the first and the last."""
    count = min(frames, wanted)
    if count < 2:
        return [0][:count]
    return [round(index * (frames - 1) / (count - 1)) for index in range(count)]


def _render_previews(
    image: Image.Image, wanted: list[int], longest: int
) -> Iterator[dict[str, Any]]:
    for number, frame in enumerate(ImageSequence.Iterator(image)):
        if not wanted or number > wanted[-1]:
            return
        frame.load()
        if number not in wanted:
            continue
        shown = ImageOps.exif_transpose(frame)
        shown = shown.convert("RGBA" if shown.has_transparency_data else "RGB")
        if shown.mode == "RGBA" and _extremes(shown)[3] == (255, 255):
            shown = shown.convert("RGB")
        shown.thumbnail((longest, longest))
        yield {
            "frame": number,
            "data": base64.b64encode(_encode(shown)).decode("ascii"),
            "blank": all(low == high for low, high in _extremes(shown)),
        }


def _extremes(picture: Image.Image) -> list[Any]:
    found = picture.getextrema()
    return list(found) if isinstance(found[0], tuple) else [found]


def _encode(picture: Image.Image) -> bytes:
    """Encode drawings without loss and photographs as JPEG."""
    stream = io.BytesIO()
    if picture.mode == "RGB" and picture.getcolors(FEW_COLORS) is None:
        picture.save(stream, "JPEG", quality=85)
    elif picture.mode == "RGB" and picture.getcolors(TEXT_COLORS) is not None:
        picture.quantize(PALETTE).save(stream, "PNG")
    else:
        picture.save(stream, "PNG")
    return stream.getvalue()
