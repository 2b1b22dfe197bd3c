from pathlib import Path

import numpy as np
import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.toolbox import Toolbox
from tests.tools.media_files import (
    call,
    ffmpeg,
    fundamental,
    heard,
    made_file,
    make_stereo,
    streams,
    workspace_of,
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspace_of(tmp_path, make_stereo(tmp_path / "tones.wav"))


@pytest.mark.parametrize(
    ("name", "codec", "tolerance"),
    [
        ("tones.wav", "pcm_s16le", 0.02),
        ("tones.mp3", "mp3", 0.05),
        ("tones.flac", "flac", 0.02),
        ("tones.ogg", "vorbis", 0.02),
        ("tones.m4a", "aac", 0.05),
        ("tones.aiff", "pcm_s16be", 0.02),
    ],
)
def test_a_clip_keeps_the_format_the_channels_and_the_length(
    media_box: Toolbox, tmp_path: Path, name: str, codec: str, tolerance: float
) -> None:
    workspace = workspace_of(tmp_path, make_stereo(tmp_path / name))
    result = call(media_box, workspace, "AudioClipTool", audio=name, start_time=1.25, end_time=3.5)
    file = made_file(workspace, result)
    assert file.suffix == Path(name).suffix
    assert streams(file)["audio"]["codec_name"] == codec
    left, right = heard(file)
    assert left.size / 44_100 == pytest.approx(2.25, abs=tolerance)
    assert fundamental(left) == pytest.approx(440, abs=2)
    assert fundamental(right) == pytest.approx(660, abs=2)


def test_a_wav_clip_has_exactly_the_samples_of_its_span(
    media_box: Toolbox, workspace: Workspace
) -> None:
    result = call(
        media_box, workspace, "AudioClipTool", audio="tones.wav", start_time=1, end_time=2
    )
    whole = heard(workspace.root / "inputs" / "tones.wav")
    assert np.array_equal(heard(made_file(workspace, result)), whole[:, 44_100:88_200])


def test_24_bits_stay_24_bits(media_box: Toolbox, tmp_path: Path) -> None:
    source = make_stereo(tmp_path / "fine.wav", seconds=1, options=("-c:a", "pcm_s24le"))
    workspace = workspace_of(tmp_path, source)
    result = call(media_box, workspace, "AudioClipTool", audio="fine.wav", end_time=0.5)
    file = made_file(workspace, result)
    assert streams(file)["audio"]["codec_name"] == "pcm_s24le"
    assert np.array_equal(heard(file), heard(source)[:, :22_050])


def test_without_times_the_clip_is_the_whole_recording(
    media_box: Toolbox, workspace: Workspace
) -> None:
    result = call(media_box, workspace, "AudioClipTool", audio="inputs/tones.wav")
    assert heard(made_file(workspace, result)).shape == (2, 5 * 44_100)
    assert result.backend.startswith("ffmpeg ")
    assert result.jail in ("bubblewrap", "landlock")


def test_the_name_is_the_agents_and_the_folder_is_ours(
    media_box: Toolbox, workspace: Workspace
) -> None:
    result = call(
        media_box,
        workspace,
        "AudioClipTool",
        audio="tones.wav",
        end_time=1,
        filename="../../intro",
        output_dir="/etc",
    )
    assert result.parts[0].content == "outputs/intro.wav"
    again = call(media_box, workspace, "AudioClipTool", audio="tones.wav", end_time=1)
    assert again.parts[0].content == "outputs/tones_clip.wav"


def test_a_clip_that_ends_early_says_so(media_box: Toolbox, workspace: Workspace) -> None:
    result = call(
        media_box, workspace, "AudioClipTool", audio="tones.wav", start_time=4, end_time=9
    )
    assert heard(made_file(workspace, result)).shape[1] == 44_100
    assert result.parts[1].content == (
        "The recording ends early: the clip has 1.00 s instead of 5.00 s."
    )


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (3, 2, "must be later than start_time"),
        (2, 2, "must be later than start_time"),
        (-1, 2, "start_time is -1; write seconds"),
        (0, -0.5, "end_time is -0.5"),
        (float("nan"), 2, "'start_time' must be a number"),
        (0, float("inf"), "'end_time' must be a number"),
        (5, 6, "has no sound after 5 s"),
        (1e9, None, "has no sound after 1e"),
    ],
)
def test_times_that_make_no_clip_are_refused(
    media_box: Toolbox, workspace: Workspace, start: float, end: float | None, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        call(
            media_box, workspace, "AudioClipTool", audio="tones.wav", start_time=start, end_time=end
        )
    assert workspace.outputs().files == ()


def test_an_mp3_named_wav_becomes_an_mp3(media_box: Toolbox, tmp_path: Path) -> None:
    source = make_stereo(tmp_path / "tones.mp3").rename(tmp_path / "tones.wav")
    workspace = workspace_of(tmp_path, source)
    result = call(media_box, workspace, "AudioClipTool", audio="tones.wav", end_time=2)
    assert result.parts[0].content == "outputs/tones_clip.mp3"
    assert heard(made_file(workspace, result)).shape[1] / 44_100 == pytest.approx(2, abs=0.05)


def test_the_sound_of_a_video_can_be_clipped(media_box: Toolbox, tmp_path: Path) -> None:
    source = tmp_path / "film.mp4"
    ffmpeg(
        *("-f", "lavfi", "-i", "testsrc=size=64x64:duration=3"),
        *("-f", "lavfi", "-i", "sine=440:duration=3", str(source)),
    )
    workspace = workspace_of(tmp_path, source)
    result = call(media_box, workspace, "AudioClipTool", audio="film.mp4", end_time=1)
    file = made_file(workspace, result)
    assert file.name == "film_clip.m4a"
    assert set(streams(file)) == {"audio"}


@pytest.mark.slow
def test_a_clip_of_an_hour_of_mp3_takes_the_clip_only(media_box: Toolbox, tmp_path: Path) -> None:
    options = ("-b:a", "64k", "-write_xing", "0")
    minute = make_stereo(tmp_path / "minute.mp3", seconds=60, options=options)
    source = tmp_path / "long.mp3"
    source.write_bytes(minute.read_bytes() * 60)
    workspace = workspace_of(tmp_path, source)
    result = call(
        media_box, workspace, "AudioClipTool", audio="long.mp3", start_time=3500, end_time=3510
    )
    assert heard(made_file(workspace, result)).shape[1] / 44_100 == pytest.approx(10, abs=0.05)
    with pytest.raises(ToolError, match=r"too long: the limit is 12\.7 minutes"):
        call(media_box, workspace, "AudioClipTool", audio="long.mp3")
