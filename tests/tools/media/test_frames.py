import asyncio
import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.errors import ToolError
from gta_bench.tools.media.frames import MOST_TEXT, Frame, Sample, choose, report, sample
from gta_bench.tools.media.probing import Media, ProbedFile, open_media
from tests.needs import needs
from tests.tools.media_files import ffmpeg, make_video, pictures, workspace_of


def look(jail: Jail, file: Path, folder: Path, *, longest: int | None = None) -> Sample:
    workspace = workspace_of(folder, file)

    async def run() -> Sample:
        source = await open_media(jail, workspace, file.name)
        return await sample(jail, source, longest=longest)

    return asyncio.run(run())


def gray(frame: Frame) -> float:
    return float(np.asarray(Image.open(io.BytesIO(frame.png)).convert("L")).mean())


def numbered_video(file: Path, *, frames: int, rate: str, options: tuple[str, ...] = ()) -> Path:
    """Each frame is as bright as its number says."""
    source = f"nullsrc=size=64x64:rate={rate},geq=lum='16+N*{200 / frames}':cb=128:cr=128"
    quality = ("-frames:v", str(frames), "-crf", "1", "-g", "50", *options)
    ffmpeg("-f", "lavfi", "-i", source, "-c:v", "libx264", *quality, str(file))
    return file


@pytest.mark.slow
@needs("ffmpeg")
@pytest.mark.parametrize(
    ("rate", "options"),
    [
        ("25", ()),
        ("30000/1001", ("-bf", "3")),
        ("25", ("-output_ts_offset", "7.5")),
    ],
)
def test_a_frame_is_the_one_that_its_number_and_time_say(
    jail: Jail, tmp_path: Path, rate: str, options: tuple[str, ...]
) -> None:
    file = numbered_video(tmp_path / "n.mp4", frames=120, rate=rate, options=options)
    truth = pictures(file, width=64, height=64).mean(axis=(1, 2, 3))
    found = look(jail, file, tmp_path)
    over, _, under = rate.partition("/")
    per_second = int(over) / int(under or 1)
    assert found.total == len(truth) == 120
    assert found.seconds == pytest.approx(120 / per_second, abs=0.01)
    for frame in found.frames:
        assert gray(frame) == pytest.approx(truth[frame.number], abs=1.0)
        assert frame.seconds == pytest.approx(frame.number / per_second, abs=0.002)


@pytest.mark.slow
@needs("ffmpeg")
def test_frames_that_a_cut_hides_are_not_counted(jail: Jail, tmp_path: Path) -> None:
    """Copied without encoding from 1.3 s on: the file holds frames from the last key frame."""
    whole = numbered_video(tmp_path / "w.mp4", frames=200, rate="25")
    cut = tmp_path / "cut.mp4"
    ffmpeg("-ss", "3.3", "-i", str(whole), "-c", "copy", str(cut))
    truth = pictures(cut, width=64, height=64).mean(axis=(1, 2, 3))
    found = look(jail, cut, tmp_path)
    assert found.total == len(truth)
    for frame in found.frames:
        assert gray(frame) == pytest.approx(truth[frame.number], abs=1.0)


@pytest.mark.slow
@needs("ffmpeg")
def test_the_two_videos_of_the_dataset_are_sampled_at_even_times(
    jail: Jail, tmp_path: Path, workflow_dir: Path
) -> None:
    expected = {
        "reddit_data/133/video.mp4": (356, 30.0, (480, 694), 12),
        "video/90-2.mp4": (29, 25 / 3, (260, 460), 4),
    }
    for name, (total, rate, size, count) in expected.items():
        file = workflow_dir / "resources" / name
        found = look(jail, file, tmp_path / file.stem)
        assert found.total == total
        assert found.seconds == pytest.approx(total / rate, abs=0.05)
        assert len(found.frames) == count
        for part, frame in enumerate(found.frames):
            assert frame.seconds == pytest.approx(frame.number / rate, abs=0.01)
            assert frame.seconds == pytest.approx(
                (part + 0.5) * found.seconds / count, abs=1 / rate
            )
            assert Image.open(io.BytesIO(frame.png)).size == size


@pytest.mark.slow
@needs("ffmpeg")
@pytest.mark.parametrize(
    ("name", "seconds", "options", "count"),
    [
        ("still.mp4", 0.04, ("-c:v", "libx264"), 1),
        ("short.webm", 0.5, ("-c:v", "libvpx"), 4),
        ("old.avi", 2.0, ("-c:v", "mjpeg"), 4),
        ("long.mp4", 40.0, ("-c:v", "libx264"), 16),
        ("moving.gif", 2.0, (), 4),
    ],
)
def test_one_frame_a_second_at_least_four_at_most_sixteen(
    jail: Jail, tmp_path: Path, name: str, seconds: float, options: tuple[str, ...], count: int
) -> None:
    file = make_video(
        tmp_path / name, seconds=seconds, size="160x120", sound=False, options=options
    )
    found = look(jail, file, tmp_path)
    assert len(found.frames) == count
    assert len(found.note) < 300


@pytest.mark.slow
@needs("ffmpeg")
def test_large_frames_are_made_smaller_where_that_is_asked_for(jail: Jail, tmp_path: Path) -> None:
    file = make_video(tmp_path / "wide.mp4", seconds=0.2, size="1920x800", sound=False)
    found = look(jail, file, tmp_path, longest=1024)
    assert Image.open(io.BytesIO(found.frames[0].png)).size == (1024, 427)


@given(
    st.lists(st.floats(0.001, 2.0), min_size=1, max_size=60),
    st.integers(1, 16),
)
def test_the_chosen_frames_are_in_order_and_each_chosen_once(gaps: list[float], count: int) -> None:
    times = [0.0, *itertools.accumulate(gaps)]
    chosen = choose(times, times[-1] * len(times) / (len(times) - 1), count=count)
    assert 1 <= len(chosen) <= count
    assert chosen == sorted(set(chosen))
    assert all(0 <= number < len(times) for number in chosen)


def test_a_sound_has_no_frames(jail: Jail) -> None:
    source = ProbedFile("inputs/a.mp3", b"x", Media("mp3", 1.0, 0.0, None, None))
    with pytest.raises(ToolError, match="has no video track"):
        asyncio.run(sample(jail, source))


SAMPLE = Sample((Frame(3, 0.12, b""), Frame(9, 0.36, b"")), total=12, seconds=0.48)


def test_a_report_has_a_line_a_frame_and_says_which_frames_were_looked_at() -> None:
    assert report(SAMPLE, [(3, "a cat"), (9, "a\n dog")], remark="Done.") == (
        "Frame 3: a cat\n"
        "Frame 9: a dog\n"
        "Looked at 2 of 12 frames of the 0.48 s, at 0.12, 0.36 s. Done."
    )


def test_a_report_is_bounded_and_says_what_it_left_out() -> None:
    words = report(SAMPLE, [(number, "x" * 10_000) for number in range(16)])
    assert len(words) < MOST_TEXT + 300
    assert "… (cut)\n" in words
    assert "(12 more frames are left out: the text would be too long.)" in words
