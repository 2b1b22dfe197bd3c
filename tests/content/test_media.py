"""Sound and film through the real ffmpeg, in the jail."""

import asyncio
import io
from pathlib import Path

import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import JailKind
from gta_bench.content import media as frame_choice
from gta_bench.content.media import (
    FilmFrame,
    probe_media,
    read_video,
)
from gta_bench.errors import ConfinedError, ToolError
from tests.confine.conftest import KINDS as KINDS_OF_JAIL
from tests.confine.conftest import require
from tests.content.films import counting_film, ffmpeg, tone
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("ffmpeg")]

LOSSLESS = ("-c:v", "libx264", "-qp", "0", "-g", "25", "-bf", "2", "-pix_fmt", "yuv444p")


def numbers(frames: tuple[FilmFrame, ...]) -> list[int]:
    """What the frames of a counting film show."""
    seen = []
    for frame in frames:
        red, _, _ = Image.open(io.BytesIO(frame.jpeg)).convert("RGB").getpixel((5, 5))  # type: ignore[misc]
        seen.append(round((int(red) * 219 / 255) / 4))
    return seen


@pytest.mark.parametrize("one_pass", [True, False], ids=["decoded once", "sought each"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("a.mp4", LOSSLESS),
        ("a.mkv", (*LOSSLESS, "-output_ts_offset", "7.5")),
        ("a.webm", ("-c:v", "libvpx", "-b:v", "2M", "-g", "12")),
        ("a.avi", ("-c:v", "mpeg4", "-q:v", "1", "-g", "10")),
        ("a.mp4", (*LOSSLESS, "-f", "lavfi", "-i", "anullsrc", "-shortest", "-c:a", "aac")),
    ],
    ids=["mp4", "late start", "webm", "avi", "with sound"],
)
def test_frames_are_those_of_their_times(
    name: str,
    arguments: tuple[str, ...],
    one_pass: bool,
    tmp_path: Path,
    jail: Jail,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both ways of asking ffmpeg give exactly the frames that were chosen."""
    monkeypatch.setattr(frame_choice, "FRAMES_A_SEEK", 100 if one_pass else 0)
    sound = arguments.index("-f") if "anullsrc" in arguments else len(arguments)
    options = (*arguments[sound : sound + 4], *arguments[:sound], *arguments[sound + 4 :])
    film = counting_film(tmp_path, name, *options)
    content = asyncio.run(read_video(film, jail, frames=8))
    assert content.frame_count == 50
    assert [frame.number for frame in content.frames] == [0, 7, 14, 21, 28, 35, 42, 49]
    assert [round(frame.seconds * 25) for frame in content.frames] == [0, 7, 14, 21, 28, 35, 42, 49]
    assert numbers(content.frames) == pytest.approx([0, 7, 14, 21, 28, 35, 42, 49], abs=0.6)
    assert content.missing == ()


def test_the_real_films_have_the_right_lengths_and_frame_times(
    workflow_dir: Path, jail: Jail
) -> None:
    resources = workflow_dir / "resources"
    film = resources / "reddit_data" / "133" / "video.mp4"
    phone = asyncio.run(read_video(film.read_bytes(), jail))
    assert phone.info.seconds == pytest.approx(11.8667, abs=0.001)
    assert phone.frame_count == 356
    expected = [number * 355 / 7 / 30 for number in range(8)]
    assert [frame.seconds for frame in phone.frames] == pytest.approx(
        expected, abs=0.5 / 30 + 0.001
    )
    assert phone.frames[-1].seconds == pytest.approx(355 / 30, abs=0.001)
    clip = asyncio.run(read_video((resources / "video" / "90-2.mp4").read_bytes(), jail, frames=4))
    assert clip.info.seconds == pytest.approx(3.48, abs=0.001)
    assert [frame.seconds for frame in clip.frames] == pytest.approx(
        [0, 1.08, 2.28, 3.36], abs=0.001
    )
    assert clip.info.video is not None
    assert Image.open(io.BytesIO(clip.frames[0].jpeg)).size == (
        clip.info.video.width,
        clip.info.video.height,
    )


def test_frames_are_scaled_into_the_bound(tmp_path: Path, jail: Jail) -> None:
    film = ffmpeg(tmp_path, "a.mp4", "-f", "lavfi", "-i", "testsrc=s=640x200:d=0.2")
    content = asyncio.run(read_video(film, jail, frames=1, longest_side=160))
    assert Image.open(io.BytesIO(content.frames[0].jpeg)).size == (160, 50)


def test_a_film_of_one_frame_shows_it(tmp_path: Path, jail: Jail) -> None:
    content = asyncio.run(read_video(counting_film(tmp_path, "a.mp4", frames=1), jail))
    assert [frame.seconds for frame in content.frames] == [0.0]


def test_facts_of_a_film_are_read(tmp_path: Path, jail: Jail) -> None:
    film = counting_film(
        tmp_path, "a.mp4", "-f", "lavfi", "-i", "anullsrc", "-shortest", *LOSSLESS, "-c:a", "aac"
    )
    info = asyncio.run(probe_media(film, jail))
    assert info.video is not None
    assert info.audio is not None
    assert (info.video.codec, info.video.width, info.video.height) == ("h264", 64, 48)
    assert (info.audio.codec, info.audio.channels) == ("aac", 2)
    assert info.seconds == pytest.approx(2.0, abs=0.1)
    assert info.video.rate == 25
    assert asyncio.run(read_video(film, jail)).frame_count == 50


def test_facts_of_a_recording_are_read(tmp_path: Path, jail: Jail) -> None:
    info = asyncio.run(probe_media(tone(tmp_path, "a.mp3"), jail))
    assert info.container == "mp3"
    assert info.audio is not None
    assert info.audio.codec == "mp3"
    assert info.seconds == pytest.approx(2.0, abs=0.1)


def test_a_sound_with_a_cover_is_a_sound(tmp_path: Path, jail: Jail) -> None:
    cover = ffmpeg(tmp_path, "c.png", "-f", "lavfi", "-i", "color=s=8x8", "-frames:v", "1")
    assert cover
    tone(tmp_path, "a.mp3")
    inputs = ("-i", str(tmp_path / "a.mp3"), "-i", str(tmp_path / "c.png"))
    data = ffmpeg(
        tmp_path, "b.mp3", *inputs, "-map", "0", "-map", "1", "-c", "copy",
        "-disposition:v", "attached_pic",
    )  # fmt: skip
    assert asyncio.run(probe_media(data, jail)).video is None
    with pytest.raises(ToolError, match="no video, only audio"):
        asyncio.run(read_video(data, jail))


def test_a_silent_film_has_no_sound(tmp_path: Path, jail: Jail) -> None:
    assert asyncio.run(probe_media(counting_film(tmp_path, "a.mp4"), jail)).audio is None


def test_a_film_of_no_length_has_no_frames(tmp_path: Path, jail: Jail) -> None:
    film = counting_film(tmp_path, "a.mp4", "-frames:v", "0", "-movflags", "+empty_moov")
    try:
        content = asyncio.run(read_video(film, jail))
    except ToolError as exc:
        assert "neither video nor audio" in str(exc) or "cannot" in str(exc)
    else:
        assert (content.frame_count, content.frames) == (0, ())


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.98])
def test_a_truncated_film_is_read_in_part_or_refused(
    share: float, tmp_path: Path, jail: Jail
) -> None:
    film = ffmpeg(tmp_path, "a.mkv", "-f", "lavfi", "-i", "testsrc=d=4", "-g", "25")
    try:
        content = asyncio.run(read_video(film[: int(len(film) * share)], jail))
    except ToolError:
        return
    assert bool(content.frames) == (content.frame_count > 0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"hello", "not audio or video"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n", "not audio or video"),
        (b"ffconcat version 1.0\nfile /etc/hostname\n", "not audio or video"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isomisom", "not audio or video"),
    ],
)
def test_what_is_neither_sound_nor_film_is_refused(data: bytes, said: str, jail: Jail) -> None:
    with pytest.raises(ToolError, match=said):
        asyncio.run(read_video(data, jail))


@pytest.mark.parametrize("kind", KINDS_OF_JAIL)
def test_films_are_read_in_every_kind_of_jail(kind: JailKind, tmp_path: Path) -> None:
    require(kind)
    with Jail(kind, slots=1) as one:
        content = asyncio.run(read_video(counting_film(tmp_path, "a.mp4"), one, frames=3))
    assert [frame.number for frame in content.frames] == [0, 24, 49]


def test_nothing_in_an_error_tells_where_our_files_are(jail: Jail) -> None:
    with pytest.raises(ToolError) as caught:
        asyncio.run(probe_media(b"hello", jail))
    assert "inputs" not in str(caught.value)
    assert not isinstance(caught.value, ConfinedError)
