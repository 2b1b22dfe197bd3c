import io
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("PIL")

from PIL import Image

from gta_bench.confine.workspace import Workspace
from gta_bench.records.atomic import AtomicTask
from gta_bench.tools.contract import Available
from gta_bench.tools.operation.mark_image import AddText
from tests.tools.calling import PLAIN, call, error
from tests.tools.pictures import changed, plain, read, space_with

LONG = "Nature does not hurry, yet everything is accomplished. " * 12


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return space_with(tmp_path, photo=plain())


def written(workspace: Workspace, text: str, position: str, **more: str) -> tuple[int, ...]:
    """The box of what was written on the white photo."""
    path = call("AddText", workspace, image="photo.png", text=text, position=position, **more)
    box = changed(read(workspace, path.parts[0].content))
    assert box is not None
    return box


@pytest.mark.parametrize("horizontal", "lmr")
@pytest.mark.parametrize("vertical", "tmb")
def test_an_anchor_puts_the_text_to_its_side(
    workspace: Workspace, horizontal: str, vertical: str
) -> None:
    left, top, right, bottom = written(workspace, "Hello", horizontal + vertical)
    across = {"l": left < 15, "m": abs(left - (300 - right)) < 8, "r": right > 285}
    down = {"t": top < 20, "m": abs(top - (200 - bottom)) < 12, "b": bottom > 180}
    assert across[horizontal]
    assert down[vertical]


def test_a_point_is_the_left_bottom_corner(workspace: Workspace) -> None:
    left, _, right, bottom = written(workspace, "Hello", "(100, 150)")
    assert abs(left - 100) <= 2
    assert right < 160
    assert 140 <= bottom <= 150


@pytest.mark.parametrize("position", ["(290, 5)", "(-50, -50)", "(9999, 9999)", "(150, 100)"])
@pytest.mark.parametrize("text", ["Hello world", LONG, "会议时间" * 40, "W" * 400])
def test_all_of_the_text_is_inside_wherever_it_begins(
    workspace: Workspace, text: str, position: str
) -> None:
    left, top, right, bottom = written(workspace, text, position)
    assert left > 0
    assert top > 0
    assert right < 300
    assert bottom < 200


def test_long_text_is_wrapped_and_lines_are_kept(workspace: Workspace) -> None:
    _, top, _, bottom = written(workspace, "one", "lt")
    single = bottom - top
    _, top, _, bottom = written(workspace, "one\ntwo\n\nfour", "lt")
    assert bottom - top > 3 * single
    _, top, _, bottom = written(workspace, LONG, "lt")
    assert bottom - top > 5 * single


def test_text_that_cannot_be_fitted_is_refused(workspace: Workspace) -> None:
    arguments = {"image": "photo.png", "position": "mm"}
    said = error("AddText", workspace, text="word " * 1500, **arguments)
    assert said.startswith("AddText: The text of 7500 characters does not fit into")
    assert "does not fit" in error("AddText", workspace, text="x" * 100_000, **arguments)


def test_empty_text_is_refused(workspace: Workspace) -> None:
    said = error("AddText", workspace, image="photo.png", text=" \n", position="mm")
    assert said == "AddText: The text is empty."


def test_a_tiny_image_takes_what_fits(tmp_path: Path) -> None:
    """Upstream's size of letters was 0 below 19 pixels, and it crashed."""
    space = space_with(tmp_path, tiny=plain(14, 12), pixel=plain(1, 1))
    call("AddText", space, image="tiny.png", text="Hi", position="mm")
    assert "does not fit" in error("AddText", space, image="pixel.png", text="Hi", position="mm")


@pytest.mark.parametrize(
    ("color", "pixel"),
    [
        ("red", (255, 0, 0)),
        ("Black", (0, 0, 0)),
        ("#00f", (0, 0, 255)),
        ("rgb(0, 128, 0)", (0, 128, 0)),
        ("'blue'", (0, 0, 255)),
    ],
)
def test_the_color_is_a_css_name_or_hex(
    workspace: Workspace, color: str, pixel: tuple[int, int, int]
) -> None:
    arguments = {"image": "photo.png", "text": "████", "position": "mm", "filename": "x"}
    call("AddText", workspace, color=color, **arguments)
    colors = read(workspace, "outputs/x.png").convert("RGB").getcolors(100_000)
    assert colors is not None
    assert pixel in {entry[1] for entry in colors}


def test_an_unknown_color_or_position_is_refused_with_examples(workspace: Workspace) -> None:
    arguments = {"image": "photo.png", "text": "Hi"}
    said = error("AddText", workspace, position="mm", color="reddish", **arguments)
    assert "'reddish' is unknown. Use a CSS name such as `red`, or `#ff0000`." in said
    assert "such as `mt`" in error("AddText", workspace, position="top", **arguments)


def test_red_is_the_default_and_the_backend_is_named(workspace: Workspace) -> None:
    result = call("AddText", workspace, image="photo.png", text="██", position="mm")
    colors = read(workspace, result.parts[0].content).convert("RGB").getcolors(100_000)
    assert colors is not None
    assert (255, 0, 0) in {entry[1] for entry in colors}
    assert AddText(PLAIN).check() == Available(result.backend)


def test_different_chinese_characters_look_different(workspace: Workspace) -> None:
    """With a font without them, every one would be the same box."""
    if "no CJK font" in AddText(PLAIN).check()[0]:
        pytest.skip("no Noto Sans CJK here: apt install fonts-noto-cjk")
    pictures = set()
    for character in "会議한":
        result = call("AddText", workspace, image="photo.png", text=character, position="mm")
        pictures.add(read(workspace, result.parts[0].content).tobytes())
    assert len(pictures) == 3


def test_a_jpeg_stays_one_and_keeps_how_it_is_turned(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    stream = io.BytesIO()
    plain().save(stream, format="JPEG", exif=exif)
    file = tmp_path / "photo.jpg"
    file.write_bytes(stream.getvalue())
    space = Workspace.create(tmp_path / "space", {"inputs/photo.jpg": file})
    result = call("AddText", space, image="photo.jpg", text="Hi", position="mm")
    assert result.parts[0].content == "outputs/photo-text.jpg"
    assert read(space, "outputs/photo-text.jpg").getexif()[0x0112] == 6


def test_texts_and_positions_of_all_reference_calls_work(
    tmp_path: Path, atomic_tasks: Mapping[str, AtomicTask], atomic_dir: Path
) -> None:
    file = atomic_dir / "image" / "dummy_generated_image.jpg"
    space = Workspace.create(tmp_path / "space", {"inputs/photo.jpg": file})
    calls = [
        c.call.arguments for t in atomic_tasks.values() for c in t.calls if c.call.name == "AddText"
    ]
    for given in calls:
        assert call("AddText", space, **{**given, "image": "photo.jpg"}).parts[0].type == "image"
    assert len(calls) == 18
