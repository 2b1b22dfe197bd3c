import io
from pathlib import Path

import pytest
from PIL import Image

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.documents import pictures
from gta_bench.tools.documents.pictures import read_pictures


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "space", {})


def keep(space: Workspace, image: Image.Image, name: str, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    space.write(name, stream.getvalue())
    return stream.getvalue()


@pytest.mark.parametrize(("kind", "name"), [("PNG", "a.png"), ("JPEG", "a.jpg")])
def test_a_plain_picture_is_used_as_it_is(space: Workspace, kind: str, name: str) -> None:
    data = keep(space, Image.new("RGB", (300, 200), "red"), name, kind)
    (picture,) = read_pictures(space, f"outputs/{name}")
    assert picture.data == data
    assert (picture.width, picture.height) == (300, 200)
    assert picture.suffix == Path(name).suffix
    assert picture.stem == "a"
    assert picture.inches == (300 / 96, 200 / 96)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("GIF", "P"), ("WEBP", "RGBA"), ("PNG", "I;16"), ("PNG", "LA"), ("JPEG", "CMYK")],
)
def test_every_other_form_becomes_one_that_all_programs_take(
    space: Workspace, kind: str, mode: str
) -> None:
    keep(space, Image.new(mode, (30, 20)), f"a.{kind.lower()}", kind)
    (picture,) = read_pictures(space, f"a.{kind.lower()}")
    with Image.open(io.BytesIO(picture.data)) as again:
        assert again.format in ("PNG", "JPEG")
        assert again.mode in ("RGB", "RGBA", "L")
        assert again.size == (30, 20)


def test_a_huge_picture_is_made_smaller_and_keeps_its_size_on_paper(space: Workspace) -> None:
    noise = Image.effect_noise((6000, 900), 90).convert("RGB")
    assert len(keep(space, noise, "a.png", "PNG")) > pictures.SMALL_BYTES
    (picture,) = read_pictures(space, "a.png")
    with Image.open(io.BytesIO(picture.data)) as again:
        assert again.size == (pictures.LONGEST_SIDE, 360)
    assert picture.width == 6000


def test_a_photo_that_lies_on_its_side_is_turned(space: Workspace) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    keep(space, Image.new("RGB", (40, 20)), "a.jpg", "JPEG", exif=exif)
    (picture,) = read_pictures(space, "a.jpg")
    assert (picture.width, picture.height) == (20, 40)
    with Image.open(io.BytesIO(picture.data)) as again:
        assert not again.getexif()


def test_several_pictures_come_in_the_order_of_their_names(space: Workspace) -> None:
    for name in ("a.png", "b.png"):
        keep(space, Image.new("RGB", (3, 2)), name, "PNG")
    paths = [picture.path for picture in read_pictures(space, "b.png,  outputs/a.png ,b.png")]
    assert paths == ["outputs/b.png", "outputs/a.png", "outputs/b.png"]
    assert read_pictures(space, "") == read_pictures(space, " , ") == ()


def test_a_bomb_is_refused_before_it_is_unpacked(space: Workspace) -> None:
    stream = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(stream, "PNG")
    space.write("bomb.png", stream.getvalue())
    with pytest.raises(ToolError, match=r"pixels; at most 50000000"):
        read_pictures(space, "bomb.png")


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0rest", b"GIF89a"])
def test_a_broken_picture_is_named(space: Workspace, data: bytes) -> None:
    space.write("broken.png", data)
    with pytest.raises(ToolError, match=r"`outputs/broken.png` cannot be read as an image"):
        read_pictures(space, "broken.png")


def test_a_picture_cut_short_is_refused(space: Workspace) -> None:
    data = keep(space, Image.effect_noise((200, 200), 50).convert("RGB"), "whole.png", "PNG")
    space.write("cut.png", data[: len(data) // 2])
    with pytest.raises(ToolError, match=r"`outputs/cut.png` cannot be read as an image"):
        read_pictures(space, "cut.png")
