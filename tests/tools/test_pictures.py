import asyncio
import io
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment
from gta_bench.tools.pictures import LONGEST_SENT, decode, encode, save_image, to_send
from tests.tools.conftest import encoded

KINDS = ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_decoded_by_its_content_whatever_it_is_called(kind: str) -> None:
    picture = decode(encoded(Image.new("RGB", (40, 30), "red"), kind), "inputs/a.jpg")
    assert (picture.mode, picture.size) == ("RGB", (40, 30))
    red, green, blue = picture.getpixel((5, 5))  # type: ignore[misc]
    assert red > 240 and green < 15 and blue < 15


def test_transparency_lies_on_white() -> None:
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert decode(encoded(clear), "a.png").getpixel((0, 0)) == (255, 255, 255)
    palette = Image.new("P", (4, 4), 0)
    stream = io.BytesIO()
    palette.save(stream, "PNG", transparency=0)
    assert decode(stream.getvalue(), "a.png").getpixel((0, 0)) == (255, 255, 255)


def bomb(width: int, height: int) -> bytes:
    """A PNG that announces a size and holds almost nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    lines = zlib.compress(b"\x00" * 10_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [8_000, 10_000, 12_000, 100_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(side: int) -> None:
    with pytest.raises(ToolError, match="pixels"):
        decode(bomb(side, side), "inputs/bomb.png")


WHOLE = encoded(Image.effect_noise((64, 64), 80).convert("RGB"))
DAMAGED = {
    "empty": b"",
    "text": b"hello",
    "cut": WHOLE[: len(WHOLE) // 2],
    "scrambled": WHOLE[:60] + bytes(200) + WHOLE[260:],
    "only a head": b"\x89PNG\r\n\x1a\n",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
    "pdf": b"%PDF-1.4\n",
}


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_what_is_no_whole_image_is_a_tool_error_with_the_path(name: str) -> None:
    with pytest.raises(ToolError, match=r"`inputs/a\.png` is"):
        decode(DAMAGED[name], "inputs/a.png")


def test_large_pictures_are_scaled_down_before_they_are_sent() -> None:
    sent = to_send(Image.new("RGB", (4000, 1000)))
    assert sent.size == (LONGEST_SENT, LONGEST_SENT // 4)
    assert decode(sent.picture.data, "x").size == sent.size
    assert to_send(Image.new("RGB", (40, 10))).size == (40, 10)


@pytest.mark.parametrize(
    ("kind", "suffix"), [("PNG", ".png"), ("JPEG", ".jpg"), ("WEBP", ".webp"), ("BMP", ".png")]
)
def test_a_made_image_is_kept_under_the_suffix_of_its_format(
    tmp_path: Path, kind: str, suffix: str
) -> None:
    space = Workspace.create(tmp_path, {})
    data = encoded(Image.new("RGB", (9, 9)), kind)
    output = asyncio.run(save_image(Equipment(Settings()), space, "made", data))
    assert output.path == f"outputs/made{suffix}"
    assert (space.read(output.path) == data) is (kind != "BMP")


def test_what_is_no_image_is_not_kept(tmp_path: Path) -> None:
    space = Workspace.create(tmp_path, {})
    with pytest.raises(ToolError, match="the backend's reply"):
        asyncio.run(save_image(Equipment(Settings()), space, "made", b"sorry"))
    assert space.outputs().files == ()


def test_encoding_loses_nothing() -> None:
    picture = Image.effect_noise((32, 32), 50).convert("RGB")
    assert decode(encode(picture), "x").tobytes() == picture.tobytes()
