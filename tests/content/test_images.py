import asyncio
import io
import zlib

import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.content import images
from gta_bench.content.images import ImageContent, measure_picture, read_image
from gta_bench.errors import ToolError
from tests.content import samples


def read(data: bytes, jail: Jail, previews: int = 1, longest_side: int = 1568) -> ImageContent:
    return asyncio.run(read_image(data, jail, previews=previews, longest_side=longest_side))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
def test_size_and_format_of_every_usual_picture_are_found(form: str, jail: Jail) -> None:
    content = read(samples.image(40, 30, form), jail)
    assert (content.format, content.width, content.height, content.frames) == (form, 40, 30, 1)
    shown = Image.open(io.BytesIO(content.previews[0].data))
    assert (shown.format, shown.size) == ("PNG", (40, 30))


def test_a_large_picture_is_shown_smaller_and_measured_as_it_is(jail: Jail) -> None:
    content = read(samples.image(4000, 1000), jail, longest_side=400)
    assert (content.width, content.height) == (4000, 1000)
    assert measure_picture(content.previews[0].data)[1:] == (400, 100)


def test_frames_of_a_moving_picture_are_shown_at_even_distances(jail: Jail) -> None:
    content = read(samples.film(31), jail, previews=4)
    assert content.frames == 31
    assert [preview.frame for preview in content.previews] == [0, 10, 20, 30]
    colors = [
        Image.open(io.BytesIO(p.data)).convert("RGB").getpixel((3, 3)) for p in content.previews
    ]
    assert colors == [(n, n, 9) for n in (0, 10, 20, 30)]


def test_a_film_too_large_to_decode_whole_is_shown_from_its_beginning(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MOST_DECODED", 12 * 16 * 16)
    content = read(samples.film(31), jail, previews=3)
    assert content.frames == 31
    assert [preview.frame for preview in content.previews] == [0, 6, 11]


def test_no_preview_is_made_where_none_is_asked_for(jail: Jail) -> None:
    assert read(samples.film(3), jail, previews=0).previews == ()


def test_a_photo_is_shown_upright(jail: Jail) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    stream = io.BytesIO()
    Image.new("RGB", (40, 20)).save(stream, "JPEG", exif=exif)
    content = read(stream.getvalue(), jail)
    assert (content.width, content.height) == (20, 40)
    assert measure_picture(content.previews[0].data)[1:] == (20, 40)


def test_transparency_survives(jail: Jail) -> None:
    stream = io.BytesIO()
    Image.new("RGBA", (4, 4), (255, 0, 0, 7)).save(stream, "PNG")
    shown = Image.open(io.BytesIO(read(stream.getvalue(), jail).previews[0].data))
    assert shown.getpixel((0, 0)) == (255, 0, 0, 7)


def chunk(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data).to_bytes(4, "big")
    return len(data).to_bytes(4, "big") + name + data + check


def huge_png(side: int) -> bytes:
    """A small file that says it is a picture of side x side."""
    head = side.to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    rows = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"hello", "not a picture"),
        (huge_png(60_000), "60000 x 60000 pixels; at most 50000000"),
        (huge_png(100), "truncated|failed"),
        (samples.noise(60)[:3000], "truncated"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n", "not a picture"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_reason(
    data: bytes, said: str, jail: Jail
) -> None:
    with pytest.raises(ToolError, match=said):
        read(data, jail)
