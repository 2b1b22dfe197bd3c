import io
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("PIL")

from PIL import Image

from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import AtomicTask
from gta_bench.tools.contract import Available
from gta_bench.tools.operation.mark_image import DrawBox
from tests.tools.calling import PLAIN, call, error
from tests.tools.pictures import changed, plain, read, space_with


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return space_with(tmp_path, photo=plain())


def test_the_box_is_drawn_and_nothing_else(workspace: Workspace) -> None:
    result = call("DrawBox", workspace, image="inputs/photo.png", bbox="(50, 60, 120, 150)")
    assert result.text == "[image](outputs/photo-box.png)"
    picture = read(workspace, "outputs/photo-box.png")
    assert changed(picture) == (50, 60, 121, 151)
    assert picture.getpixel((50, 60)) == (255, 0, 0)
    red, green, blue = picture.getpixel((80, 100))  # type: ignore[misc]
    assert red == 255
    assert 150 < green == blue < 255


def test_the_result_names_pillow_and_the_font(workspace: Workspace) -> None:
    backend = call("DrawBox", workspace, image="photo.png", bbox="1,1,9,9").backend
    assert backend.startswith("pillow 1")
    assert "Noto Sans CJK SC" in backend or "no CJK font here" in backend
    assert DrawBox(PLAIN).check() == Available(backend)


@pytest.mark.parametrize(
    ("bbox", "above"), [("(50, 60, 120, 150)", True), ("(50, 3, 120, 150)", False)]
)
def test_the_label_stands_above_the_box_or_inside_where_there_is_no_room(
    workspace: Workspace, bbox: str, above: bool
) -> None:
    call("DrawBox", workspace, image="photo.png", bbox=bbox, annotation="Here", filename="x")
    box = changed(read(workspace, "outputs/x.png"))
    assert box is not None
    assert (box[1] < 60 - 8) if above else box[1] == 3


@pytest.mark.parametrize(
    "annotation",
    ["Meeting Time", "会议时间、日本語。한국어", "A long label " * 12, "W" * 200, "two\nlines"],
)
@pytest.mark.parametrize("bbox", ["(0, 0, 20, 20)", "(280, 150, 299, 199)", "(0, 0, 299, 199)"])
def test_the_plate_of_a_label_ends_on_the_picture(
    workspace: Workspace, annotation: str, bbox: str
) -> None:
    """Letters are white on red, so a label over the edge would leave white on the border."""
    call("DrawBox", workspace, image="photo.png", bbox=bbox, annotation=annotation, filename="x")
    call("DrawBox", workspace, image="photo.png", bbox=bbox, filename="bare")
    marked = read(workspace, "outputs/x.png").convert("RGB")
    bare = read(workspace, "outputs/bare.png").convert("RGB")
    border = [(x, y) for y in range(200) for x in (0, 299)]
    border += [(x, y) for x in range(300) for y in (0, 199)]
    differing = {marked.getpixel(at) for at in border if marked.getpixel(at) != bare.getpixel(at)}
    assert differing <= {(255, 0, 0)}


def test_swapped_corners_and_parts_outside_are_corrected(workspace: Workspace) -> None:
    call("DrawBox", workspace, image="photo.png", bbox="(500, 150, 250, -20)", filename="x")
    assert changed(read(workspace, "outputs/x.png")) == (250, 0, 300, 151)


def test_a_box_outside_of_the_image_is_refused(workspace: Workspace) -> None:
    said = error("DrawBox", workspace, image="photo.png", bbox="(500, 500, 600, 600)")
    assert said.startswith("DrawBox: The box '(500, 500, 600, 600)' is outside of the image")


def test_a_tiny_image_takes_a_box_but_no_long_label(tmp_path: Path) -> None:
    space = space_with(tmp_path, tiny=plain(9, 7), pixel=plain(1, 1))
    call("DrawBox", space, image="tiny.png", bbox="(2, 2, 5, 5)")
    call("DrawBox", space, image="pixel.png", bbox="(0, 0, 1, 1)")
    said = error("DrawBox", space, image="tiny.png", bbox="(2, 2, 5, 5)", annotation="hello")
    assert "does not fit into" in said


@pytest.mark.parametrize(
    ("kind", "mode", "suffix", "kept"),
    [
        ("PNG", "RGB", ".png", "PNG"),
        ("PNG", "RGBA", ".png", "PNG"),
        ("PNG", "L", ".png", "PNG"),
        ("PNG", "I;16", ".png", "PNG"),
        ("PNG", "P", ".png", "PNG"),
        ("JPEG", "RGB", ".jpg", "JPEG"),
        ("JPEG", "L", ".jpg", "JPEG"),
        ("JPEG", "CMYK", ".jpg", "JPEG"),
        ("WEBP", "RGBA", ".webp", "WEBP"),
        ("GIF", "P", ".png", "PNG"),
        ("BMP", "RGB", ".png", "PNG"),
        ("TIFF", "RGB", ".png", "PNG"),
    ],
)
def test_the_images_type_is_kept_whatever_its_name_says(
    tmp_path: Path, kind: str, mode: str, suffix: str, kept: str
) -> None:
    file = tmp_path / "lies.jpg"
    Image.new(mode, (60, 40)).save(file, format=kind)
    space = Workspace.create(tmp_path / "space", {"inputs/lies.jpg": file})
    result = call("DrawBox", space, image="lies.jpg", bbox="1, 1, 30, 30", annotation="a")
    assert result.parts[0].content == f"outputs/lies-box{suffix}"
    assert read(space, result.parts[0].content).format == kept


def test_transparency_is_kept(tmp_path: Path) -> None:
    space = space_with(tmp_path, glass=Image.new("RGBA", (60, 40), (0, 0, 255, 0)))
    call("DrawBox", space, image="glass.png", bbox="(10, 10, 20, 20)", filename="x.png")
    assert read(space, "outputs/x.png").getpixel((50, 30)) == (0, 0, 255, 0)


@pytest.mark.parametrize(
    ("filename", "path"),
    [
        ("marked", "outputs/marked.png"),
        ("marked.png", "outputs/marked.png"),
        ("marked.jpg", "outputs/marked.png"),
        ("../../etc/passwd", "outputs/passwd.png"),
        ("/tmp/x.png", "outputs/x.png"),
    ],
)
def test_the_file_name_can_be_chosen_but_not_the_folder(
    workspace: Workspace, filename: str, path: str
) -> None:
    arguments = {"image": "photo.png", "bbox": "1,1,9,9", "filename": filename}
    result = call("DrawBox", workspace, output_dir="/etc", **arguments)
    assert result.parts[0].content == path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no image at all", "is not an image"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "cannot be read as an image|is not an image"),
        (b"\xff\xd8\xff\xe0" + bytes(40), "cannot be read as an image|is not an image"),
        (b"", "is not an image"),
    ],
)
def test_a_broken_image_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "broken.png"
    file.write_bytes(content)
    space = Workspace.create(tmp_path / "space", {"inputs/broken.png": file})
    message = error("DrawBox", space, image="broken.png", bbox="1,1,9,9")
    assert any(words in message for words in said.split("|"))


def test_a_picture_that_is_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(stream, format="PNG")
    file = tmp_path / "bomb.png"
    file.write_bytes(stream.getvalue())
    space = Workspace.create(tmp_path / "space", {"inputs/bomb.png": file})
    said = error("DrawBox", space, image="bomb.png", bbox="1,1,9,9")
    assert "20000 x 20000 pixels" in said or "more than 50000000 pixels" in said


def test_a_cut_off_photo_is_refused(tmp_path: Path, atomic_dir: Path) -> None:
    whole = (atomic_dir / "image" / "image_293.jpg").read_bytes()
    file = tmp_path / "half.jpg"
    file.write_bytes(whole[: len(whole) // 2])
    space = Workspace.create(tmp_path / "space", {"inputs/half.jpg": file})
    assert "cannot be read as an image" in error("DrawBox", space, image="half.jpg", bbox="1,1,9,9")


def test_all_reference_calls_give_an_image(
    tmp_path: Path, atomic_tasks: Mapping[str, AtomicTask], atomic_dir: Path
) -> None:
    drawn = 0
    for task in atomic_tasks.values():
        files = {entry.path: atomic_dir / entry.source for entry in task.attachments}
        for turn in task.calls:
            given = turn.call.arguments
            if turn.call.name == "DrawBox" and given.get("image") in files:
                space = Workspace.create(tmp_path / f"{task.id}-{drawn}", files)
                assert call("DrawBox", space, **given).parts[0].type == "image"
                drawn += 1
    assert drawn == 16  # two more calls name no image
