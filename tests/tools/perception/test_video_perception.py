"""VideoOCR, VideoObjectDetection and VideoDescription."""

import asyncio
import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.settings import EndpointSettings, Settings, ToolSettings
from gta_bench.tools.backends.boxes import Box
from gta_bench.tools.backends.local import KnownObject
from gta_bench.tools.contract import Available, Equipment, Unavailable
from gta_bench.tools.media.frames import Engine, FrameTool, Sample, sample
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.perception.video_object_detection import VideoObjectDetection, format_objects
from gta_bench.tools.perception.video_ocr import VideoOCR
from gta_bench.tools.toolbox import Toolbox
from tests.needs import needs
from tests.tools.media_files import call, ffmpeg, make_video, workspace_of
from tests.tools.media_server import Script, said, serving

REAL = ("reddit_data/133/video.mp4", "video/90-2.mp4")


def sampled(jail: Jail, file: Path, folder: Path) -> Sample:
    workspace = workspace_of(folder, file)

    async def run() -> Sample:
        return await sample(jail, await open_media(jail, workspace, file.name))

    return asyncio.run(run())


def describe(tool: type[FrameTool], look: Callable[[bytes], str], found: Sample) -> str:
    async def look_later(png: bytes) -> str:
        return look(png)

    made = tool(Equipment(Settings()))
    return asyncio.run(made.describe(Engine("table", look_later), found))


@pytest.fixture(scope="module")
def rapid() -> Callable[[bytes], str]:
    """The real engine, as lines `(x1, y1, x2, y2) text`."""
    rapidocr = pytest.importorskip("rapidocr")
    engine = rapidocr.RapidOCR(params={"Global.log_level": "error"})

    def read(png: bytes) -> str:
        found = engine(png)
        if found.boxes is None:
            return ""
        corners = [[*box.min(0).astype(int), *box.max(0).astype(int)] for box in found.boxes]
        return " | ".join(
            f"({', '.join(map(str, corner))}) {words}"
            for corner, words in zip(corners, found.txts, strict=True)
        )

    return read


@pytest.fixture
def titles(tmp_path: Path) -> Path:
    """FIRST for two seconds, SECOND for two, nothing for two."""
    file = tmp_path / "titles.mp4"
    draw = "drawtext=font=Noto Sans CJK SC:fontsize=48:fontcolor=black:x=40:y=60"
    shown = f"{draw}:text=FIRST:enable='lt(t,2)',{draw}:text=SECOND:enable='between(t,2,3.99)'"
    white = "color=white:size=320x200:rate=10:duration=6"
    ffmpeg("-f", "lavfi", "-i", white, "-vf", shown, "-pix_fmt", "yuv420p", str(file))
    return file


@pytest.mark.slow
@needs("ffmpeg")
def test_text_is_told_at_the_frame_where_it_changes(
    jail: Jail, tmp_path: Path, titles: Path, rapid: Callable[[bytes], str]
) -> None:
    lines = describe(VideoOCR, rapid, sampled(jail, titles, tmp_path)).splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r"Frame 5: \(\d+, \d+, \d+, \d+\) FIRST", lines[0])
    assert re.fullmatch(r"Frame 25: \(\d+, \d+, \d+, \d+\) SECOND", lines[1])
    assert lines[2] == (
        "Looked at 6 of 60 frames of the 6.00 s, at 0.50, 1.50, 2.50, 3.50, 4.50, 5.50 s. "
        "Frames that are not listed show the same text as the frame before, or none."
    )


@pytest.mark.slow
@needs("ffmpeg")
@pytest.mark.parametrize("name", REAL)
def test_text_in_the_datasets_videos_is_bounded(
    jail: Jail, tmp_path: Path, workflow_dir: Path, rapid: Callable[[bytes], str], name: str
) -> None:
    found = sampled(jail, workflow_dir / "resources" / name, tmp_path)
    words = describe(VideoOCR, rapid, found)
    assert len(words) <= 20_500
    numbers = [int(number) for number in re.findall(r"^Frame (\d+): ", words, re.MULTILINE)]
    assert set(numbers) <= {frame.number for frame in found.frames}
    assert found.note in words


def test_frames_without_text_are_left_out_and_no_text_at_all_is_said(jail: Jail) -> None:
    from gta_bench.tools.media.frames import Frame

    frames = Sample(tuple(Frame(n, n / 10, bytes([n])) for n in range(5)), 50, 5.0)
    shown = {b"\x01": "a", b"\x02": "a", b"\x04": "a | b"}
    lines = describe(VideoOCR, lambda png: shown.get(png, ""), frames).splitlines()
    assert lines[:-1] == ["Frame 1: a", "Frame 4: a | b"]
    blank = describe(VideoOCR, lambda _: "", frames)
    assert blank.startswith("No text was found. Looked at 5 of 50")


def dark_corner(png: bytes) -> list[KnownObject]:
    """A real, if modest, detector: the box around everything dark."""
    dark = np.asarray(Image.open(io.BytesIO(png)).convert("L")) < 64
    if not dark.any():
        return []
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    box = Box(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
    return [KnownObject(box, "truck", 0.876), KnownObject(box, "mirror", 0.8)]


def find_dark(png: bytes) -> str:
    return format_objects(dark_corner(png))


@pytest.mark.slow
@needs("ffmpeg")
def test_things_are_told_frame_by_frame_in_pixels_of_the_video(jail: Jail, tmp_path: Path) -> None:
    file = tmp_path / "moving.mp4"
    box = "drawbox=x=40:y=30:w=20:h=10:color=black:t=fill:enable='lt(t,2)'"
    white = "color=white:size=160x120:rate=10:duration=4"
    ffmpeg("-f", "lavfi", "-i", white, "-vf", box, "-crf", "5", str(file))
    found = sampled(jail, file, tmp_path)
    lines = describe(VideoObjectDetection, find_dark, found).splitlines()
    thing = "(40, 30, 60, 40) conf: 0.88, class: truck (7)"
    assert lines == [
        f"Frame 5: {thing}",
        f"Frame 15: {thing}",
        "Frame 25: (no detections)",
        "Frame 35: (no detections)",
        "Looked at 4 of 40 frames of the 4.00 s, at 0.50, 1.50, 2.50, 3.50 s.",
    ]


@pytest.mark.slow
@needs("ffmpeg")
@pytest.mark.parametrize("name", REAL)
def test_detections_in_the_datasets_videos_are_bounded_and_have_true_times(
    jail: Jail, tmp_path: Path, workflow_dir: Path, name: str
) -> None:
    def many(png: bytes) -> str:
        return format_objects(dark_corner(png) * 500)

    found = sampled(jail, workflow_dir / "resources" / name, tmp_path)
    words = describe(VideoObjectDetection, many, found)
    assert len(words) <= 20_500
    once = describe(VideoObjectDetection, find_dark, found).splitlines()
    assert [int(line.split()[1][:-1]) for line in once[:-1]] == [
        frame.number for frame in found.frames
    ]
    assert once[-1].endswith(", ".join(f"{frame.seconds:.2f}" for frame in found.frames) + " s.")


def vision_box(jail: Jail, url: str) -> Toolbox:
    settings = Settings(
        endpoints={"eyes": EndpointSettings(url=url, model="seer-2")},
        tools={"VideoDescription": ToolSettings(endpoint="eyes")},
    )
    return Toolbox(Equipment(settings, jail=jail))


@pytest.mark.slow
@needs("ffmpeg")
def test_each_frame_is_described_by_the_endpoint(
    loopback: None, jail: Jail, tmp_path: Path
) -> None:
    replies = [
        said({"choices": [{"message": {"content": f"Picture {number}."}}]}) for number in range(4)
    ]
    script = Script({"POST /v1/chat/completions": replies})
    file = make_video(tmp_path / "film.mp4", seconds=4, size="2048x64", sound=False)
    workspace = workspace_of(tmp_path, file)
    with serving(script) as url:
        result = call(vision_box(jail, url), workspace, "VideoDescription", video="film.mp4")
    assert result.text.splitlines() == [
        "Frame 12: Picture 0.",
        "Frame 37: Picture 1.",
        "Frame 62: Picture 2.",
        "Frame 87: Picture 3.",
        "Looked at 4 of 100 frames of the 4.00 s, at 0.48, 1.48, 2.48, 3.48 s.",
    ]
    assert re.fullmatch(r"seer-2 at 127.0.0.1:\d+ \(endpoint eyes\), ffmpeg \S+", result.backend)
    assert script.keys == {""}
    asked = json.loads(script.asked[0][1])
    assert asked["model"] == "seer-2"
    url = asked["messages"][0]["content"][0]["image_url"]["url"]
    picture = Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,"))))
    assert picture.size == (1024, 32)


def test_without_an_endpoint_there_is_no_description(media_box: Toolbox, jail: Jail) -> None:
    state = media_box.availability("VideoDescription")
    assert isinstance(state, Unavailable)
    assert state.reason == "no endpoint is set for VideoDescription."
    assert "[tools.VideoDescription]" in state.fix
    ready = vision_box(jail, "http://127.0.0.1:9/v1").availability("VideoDescription")
    assert ready == Available("seer-2 at 127.0.0.1:9 (endpoint eyes)")
