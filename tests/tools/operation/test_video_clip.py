from pathlib import Path

import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.toolbox import Toolbox
from tests.tools.media_files import (
    call,
    ffmpeg,
    ffprobe,
    fundamental,
    heard,
    made_file,
    make_stereo,
    make_video,
    pictures,
    streams,
    workspace_of,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspace_of(tmp_path, make_video(tmp_path / "film.mp4"))


def test_a_clip_has_the_asked_length_its_sound_and_what_browsers_play(
    media_box: Toolbox, workspace: Workspace
) -> None:
    result = call(
        media_box,
        workspace,
        "VideoClip",
        video="film.mp4",
        start_time=1,
        end_time=2.5,
        filename="c",
    )
    file = made_file(workspace, result)
    assert result.parts[0].content == "outputs/c.mp4"
    kinds = streams(file)
    assert (kinds["video"]["codec_name"], kinds["video"]["pix_fmt"]) == ("h264", "yuv420p")
    assert kinds["audio"]["codec_name"] == "aac"
    assert float(kinds["video"]["duration"]) == pytest.approx(1.5, abs=0.04)  # a frame
    assert fundamental(heard(file)[0]) == pytest.approx(440, abs=3)
    content = file.read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")  # plays before it is loaded


def test_a_clip_begins_at_the_frame_and_not_at_the_key_frame(
    media_box: Toolbox, tmp_path: Path
) -> None:
    """Frames are gray by their number; one key frame a minute."""
    source = tmp_path / "gray.mp4"
    gray = "nullsrc=size=64x64:rate=10:duration=5,geq=lum='4*N':cb=128:cr=128"
    ffmpeg("-f", "lavfi", "-i", gray, "-c:v", "libx264", "-g", "600", "-crf", "1", str(source))
    workspace = workspace_of(tmp_path, source)
    result = call(media_box, workspace, "VideoClip", video="gray.mp4", start_time=2, end_time=3)
    shown = pictures(made_file(workspace, result), width=64, height=64).mean(axis=(1, 2, 3))
    expected = pictures(source, width=64, height=64).mean(axis=(1, 2, 3))[20:30]
    assert shown == pytest.approx(expected, abs=2)


def test_without_times_it_is_the_whole_video_and_a_late_end_is_reported(
    media_box: Toolbox, workspace: Workspace
) -> None:
    whole = call(media_box, workspace, "VideoClip", video="film.mp4", output_dir="/root")
    assert len(whole.parts) == 1
    assert float(ffprobe(made_file(workspace, whole))["format"]["duration"]) == pytest.approx(
        4, abs=0.05
    )
    short = call(media_box, workspace, "VideoClip", video="film.mp4", start_time=3, end_time=60)
    assert "instead of 57.00 s" in short.parts[1].content


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("old.avi", ("-c:v", "mjpeg", "-c:a", "pcm_s16le")),
        ("web.webm", ("-c:v", "libvpx", "-b:v", "300k", "-c:a", "libvorbis")),
        ("box.mkv", ("-c:v", "libx264", "-pix_fmt", "yuv444p", "-c:a", "flac")),
        ("flash.flv", ("-c:v", "flv", "-c:a", "libmp3lame", "-ar", "44100")),
    ],
)
def test_other_formats_and_odd_sizes_become_mp4(
    media_box: Toolbox, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    source = make_video(tmp_path / name, seconds=2, size="161x121", options=options)
    workspace = workspace_of(tmp_path, source)
    result = call(media_box, workspace, "VideoClip", video=name, end_time=1)
    kinds = streams(made_file(workspace, result))
    assert (kinds["video"]["width"], kinds["video"]["height"]) == (160, 120)
    assert kinds["video"]["pix_fmt"] == "yuv420p"
    assert kinds["audio"]["codec_name"] == "aac"


def test_a_phone_video_stays_upright(media_box: Toolbox, tmp_path: Path) -> None:
    flat = make_video(tmp_path / "flat.mp4", seconds=1, size="320x240")
    upright = tmp_path / "upright.mp4"
    ffmpeg("-i", str(flat), "-c", "copy", "-metadata:s:v", "rotate=90", str(upright))
    workspace = workspace_of(tmp_path, upright)
    result = call(media_box, workspace, "VideoClip", video="upright.mp4")
    video = streams(made_file(workspace, result))["video"]
    assert (video["width"], video["height"]) == (240, 320)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (3, 1, "must be later"),
        (-1, None, "start_time is -1"),
        (float("nan"), None, "'start_time' must be a number"),
        (0, float("-inf"), "'end_time' must be a number"),
        (4.5, 6, r"is 4\.00 s long; start_time is 4\.5 s"),
    ],
)
def test_times_that_make_no_clip_are_refused(
    media_box: Toolbox, workspace: Workspace, start: float, end: float | None, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        call(media_box, workspace, "VideoClip", video="film.mp4", start_time=start, end_time=end)
    assert workspace.outputs().files == ()


def test_a_sound_with_cover_art_is_no_video(media_box: Toolbox, tmp_path: Path) -> None:
    tones = make_stereo(tmp_path / "tones.mp3", seconds=1)
    cover = tmp_path / "cover.png"
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x64", "-frames:v", "1", str(cover))
    song = tmp_path / "song.mp3"
    picture = ("-map", "0", "-map", "1", "-c", "copy", "-disposition:v", "attached_pic")
    ffmpeg("-i", str(tones), "-i", str(cover), *picture, str(song))
    workspace = workspace_of(tmp_path, song)
    with pytest.raises(ToolError, match="has no video track"):
        call(media_box, workspace, "VideoClip", video="song.mp3")
    clip = call(media_box, workspace, "AudioClipTool", audio="song.mp3")
    assert set(streams(made_file(workspace, clip))) == {"audio"}
