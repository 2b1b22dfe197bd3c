"""Inside the jail: a picture measured, and some of its frames as PNG."""

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
# Edges of letters have hundreds of colors; a palette of 256 shows them alike in half the bytes.
TEXT_COLORS = 2048
PALETTE = 256
MOST_WORDS = 20_000
# Of the many fields of a photograph: those in which people write.
WRITTEN = {0x010D: "DocumentName", 0x010E: "ImageDescription", 0x013B: "Artist",
           0x8298: "Copyright", 0x9C9B: "XPTitle", 0x9C9C: "XPComment", 0x9C9D: "XPAuthor",
           0x9C9E: "XPKeywords", 0x9C9F: "XPSubject"}  # fmt: skip
TAGS = re.compile(r"<[^<>]{0,5000}>")
USER_COMMENT = 0x9286
DETAILS = 0x8769


def prepare() -> dict[str, Any]:
    """The plugins are imported here; a bomb's warning is not needed beside our own bound."""
    Image.init()
    warnings.simplefilter("ignore")
    return {}


def finish(names: dict[str, Any]) -> str:
    """The picture as JSON, or why not."""
    options = json.loads(Path("options.json").read_text(encoding="utf-8"))
    Image.MAX_IMAGE_PIXELS = None
    try:
        known = [name for name in FORMATS if name in Image.OPEN]
        with Image.open("file", formats=known) as image:
            if image.width * image.height > options["most_pixels"]:
                most = options["most_pixels"]
                return f"It has {image.width} x {image.height} pixels; at most {most} are read."
            return json.dumps(_content(image, options))
    except UnidentifiedImageError:
        return "It is not a picture of a known format."


def _content(image: Image.Image, options: dict[str, Any]) -> dict[str, Any]:
    frames = min(getattr(image, "n_frames", 1), MOST_FRAMES)
    name, mode = image.format, image.mode
    decoded = min(frames, max(1, options["most_decoded"] // (image.width * image.height)))
    wanted = _even(decoded, options["previews"])
    previews = list(_previews(image, wanted, options["longest_side"]))
    image.seek(0)
    shown = ImageOps.exif_transpose(image)
    return {
        "format": name,
        "mode": mode,
        "width": shown.width,
        "height": shown.height,
        "frames": frames,
        "previews": previews,
        "words": " ".join(_words(image))[:MOST_WORDS],
    }


def _words(image: Image.Image) -> Iterator[str]:
    """What is written in the file beside the picture."""
    chunks = getattr(image, "text", {})  # of PNG
    yield from (_text(value) for name, value in chunks.items() if name != "Software")
    if "comment" in image.info:
        yield _text(image.info["comment"])
    packet = image.info.get("xmp")
    if packet:
        yield " ".join(TAGS.sub(" ", _text(packet)).split())
    yield from (_text(value) for value in _press(image))
    fields = image.getexif()
    yield from (_text(fields[tag]) for tag in WRITTEN if tag in fields)
    more = fields.get_ifd(DETAILS)
    if USER_COMMENT in more:
        yield _text(more[USER_COMMENT])


def _press(image: Any) -> Iterator[Any]:
    """Captions and keywords as agencies write them (IPTC)."""
    for value in (IptcImagePlugin.getiptcinfo(image) or {}).values():
        yield from value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)
    head, code = value[8:], "utf-16" if value.startswith(b"UNICODE") else "utf-8"
    body = head if value[:8] in (b"ASCII\0\0\0", b"UNICODE\0", bytes(8)) else value
    if body.count(0) > len(body) // 3:
        code = "utf-16"
    return body.decode(code, "replace").replace("\0", "")


def _even(frames: int, wanted: int) -> list[int]:
    """Numbers of frames at even distances, the first and the last included."""
    count = min(frames, wanted)
    if count < 2:
        return [0][:count]
    return [round(place * (frames - 1) / (count - 1)) for place in range(count)]


def _previews(image: Image.Image, wanted: list[int], longest: int) -> Iterator[dict[str, Any]]:
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
            "data": base64.b64encode(_encoded(shown)).decode("ascii"),
            "blank": all(low == high for low, high in _extremes(shown)),
        }


def _extremes(picture: Image.Image) -> list[Any]:
    found = picture.getextrema()
    return list(found) if isinstance(found[0], tuple) else [found]


def _encoded(picture: Image.Image) -> bytes:
    """Drawings sharp, photographs small."""
    stream = io.BytesIO()
    if picture.mode == "RGB" and picture.getcolors(FEW_COLORS) is None:
        picture.save(stream, "JPEG", quality=85)
    elif picture.mode == "RGB" and picture.getcolors(TEXT_COLORS) is not None:
        picture.quantize(PALETTE).save(stream, "PNG")
    else:
        picture.save(stream, "PNG")
    return stream.getvalue()
