from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import JsonValue

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.toolbox import Toolbox
from tests.tools.media_files import (
    call,
    ffmpeg,
    heard,
    made_file,
    pictures,
    streams,
    workspace_of,
)

WIDTH, HEIGHT = 640, 360


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One second of gray with a tone in AAC."""
    file = tmp_path_factory.mktemp("film") / "film.mp4"
    gray = f"color=gray:size={WIDTH}x{HEIGHT}:rate=10:duration=1"
    ffmpeg("-f", "lavfi", "-i", gray, "-f", "lavfi", "-i", "sine=440:duration=1", str(file))
    return file


@pytest.fixture
def workspace(tmp_path: Path, film: Path) -> Workspace:
    return workspace_of(tmp_path, film)


def drawn(file: Path) -> NDArray[np.bool_]:
    """Where the middle frame is not gray."""
    frames = pictures(file, width=WIDTH, height=HEIGHT).astype(int)
    return np.asarray(np.abs(frames[5] - 126).max(axis=2) > 60)


def extent(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what is drawn."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])


def add(box: Toolbox, workspace: Workspace, text: str, **style: JsonValue) -> Path:
    result = call(box, workspace, "AddTextVideoTool", video="film.mp4", text=text, **style)
    return made_file(workspace, result)


@pytest.mark.slow
def test_the_sound_is_kept_as_it_is_and_browsers_play_the_file(
    media_box: Toolbox, workspace: Workspace, film: Path
) -> None:
    file = add(media_box, workspace, "Hello")
    kinds = streams(file)
    assert (kinds["video"]["codec_name"], kinds["video"]["pix_fmt"]) == ("h264", "yuv420p")
    assert np.array_equal(heard(file), heard(film))
    content = file.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")
    assert file.name == "film_text.mp4"


@pytest.mark.slow
def test_the_text_stands_on_its_position_in_its_color(
    media_box: Toolbox, workspace: Workspace
) -> None:
    file = add(media_box, workspace, "HHHH", position="100,200", color="255,0,0")
    left, top, right, bottom = extent(drawn(file))
    assert left == pytest.approx(100, abs=5)
    assert bottom == pytest.approx(200, abs=5)
    assert bottom - top == pytest.approx(24, abs=5)
    frame = pictures(file, width=WIDTH, height=HEIGHT)[5].astype(int)
    assert (frame[..., 2] - frame[..., 0]).max() > 120  # blue comes first
    larger = add(media_box, workspace, "HHHH", position="100,200", font_scale=2)
    assert extent(drawn(larger))[2] - left == pytest.approx(2 * (right - left), rel=0.15)


@pytest.mark.slow
def test_thicker_text_has_more_ink(media_box: Toolbox, workspace: Workspace) -> None:
    thin = add(media_box, workspace, "Weight", thickness=1)
    thick = add(media_box, workspace, "Weight", thickness=6)
    assert drawn(thick).sum() > 1.3 * drawn(thin).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "季度报告:收入增长",
        "日本語のテキスト",
        "한국어 텍스트 안녕하세요",
    ],
)
def test_each_script_is_drawn_and_not_boxed(
    media_box: Toolbox, workspace: Workspace, text: str
) -> None:
    """A font without the characters draws the same box for each, so all would look alike."""
    first = drawn(add(media_box, workspace, text[0] * 8))
    second = drawn(add(media_box, workspace, text[2] * 8))
    assert first.sum() > 500
    assert (first ^ second).sum() > 0.2 * first.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("position", "text"),
    [
        ("630,355", "far to the right and low"),
        ("-50,-50", "above and to the left"),
        ("(10, 40)", "many words that do not fit into one line " * 20),
        ("10,40", "W" * 300),
        ("10,40", "line\n" * 25),
        ("999999,999999", "报告" * 100),
    ],
)
def test_the_text_stays_inside_the_picture(
    media_box: Toolbox, workspace: Workspace, position: str, text: str
) -> None:
    file = add(media_box, workspace, text, position=position)
    left, top, right, bottom = extent(drawn(file))
    assert left >= 1
    assert top >= 1
    assert right <= WIDTH - 2
    assert bottom <= HEIGHT - 2


@pytest.mark.slow
def test_signs_with_a_meaning_for_ffmpeg_are_drawn_as_they_are(
    media_box: Toolbox, workspace: Workspace
) -> None:
    plain = drawn(add(media_box, workspace, "100 pct"))
    for text in ("%{pts} 100%", r"a\nb: 'c' [d]; e=f, \\", "$(id) `id` %{file:/etc/passwd}"):
        shown = drawn(add(media_box, workspace, text, filename="signs"))
        rows = np.flatnonzero(shown.any(axis=1))
        assert rows[-1] - rows[0] < 50, "one line"
        assert shown.sum() > 0.5 * plain.sum()


@pytest.mark.parametrize(
    ("style", "said"),
    [
        ({"text": "  \n "}, "text is empty"),
        ({"text": "\u200b\u0007"}, "text is empty"),
        ({"text": "x" * 2001}, "at most 2000"),
        ({"text": "line\n" * 60}, "text takes 60 lines; the video has room for 29"),
        ({"text": "x", "position": "left"}, "position is 'left'; write 'x,y'"),
        ({"text": "x", "position": "1,2,3"}, "write 'x,y'"),
        ({"text": "x", "position": "50:text=y,50"}, "write 'x,y'"),
        ({"text": "x", "color": "red"}, "color is 'red'; write 'B,G,R'"),
        ({"text": "x", "color": "0,0,256"}, "from 0 to 255"),
        ({"text": "x", "font_scale": 0}, "argument 'font_scale'"),
        ({"text": "x", "font_scale": float("nan")}, "argument 'font_scale'"),
        ({"text": "x", "thickness": -1}, "argument 'thickness'"),
        ({}, "missing argument 'text'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_any_work(
    media_box: Toolbox, workspace: Workspace, style: dict[str, JsonValue], said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        call(media_box, workspace, "AddTextVideoTool", video="film.mp4", **style)
    assert workspace.outputs().files == ()
