"""Files that lie, break off or lead elsewhere: a ToolError or a clean result, soon."""

import re
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.toolbox import Toolbox
from tests.tools.media_files import (
    call,
    ffmpeg,
    heard,
    made_file,
    make_stereo,
    make_video,
    workspace_of,
)

SECONDS = 30

LISTS = {
    "concat": "ffconcat version 1.0\nfile secret.mp4\n",
    "concat by an absolute path": "ffconcat version 1.0\nfile /etc/hostname\n",
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nsecret.mp4\n#EXT-X-ENDLIST\n",
    "hls over the network": (
        "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n"
    ),
    "dash": (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" '
        'mediaPresentationDuration="PT4S"><Period><AdaptationSet><Representation id="1" '
        'bandwidth="1"><BaseURL>secret.mp4</BaseURL></Representation></AdaptationSet></Period>'
        "</MPD>"
    ),
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\n",
    "subtitles": "1\n00:00:00,000 --> 00:00:09,000\nread me\n",
    "plain text": "This is no video at all.\n" * 100,
    "web page": "<!doctype html><video src='secret.mp4'></video>",
    "picture by pattern": "%d.png",
}


def refused_or_clean(box: Toolbox, folder: Path, file: Path, tool: str) -> str:
    """What the tool says; the test fails if it takes too long or raises anything else."""
    workspace = workspace_of(folder, file)
    kind = "audio" if tool in ("AudioClipTool", "NoiseReduction") else "video"
    start = time.perf_counter()
    try:
        said = call(box, workspace, tool, **{kind: file.name}).text
    except ToolError as exc:
        said = str(exc)
    assert time.perf_counter() - start < SECONDS
    assert str(folder) not in said
    assert "@ 0x" not in said
    return said


@pytest.mark.parametrize("trick", LISTS)
def test_a_file_that_only_names_other_files_is_refused(
    media_box: Toolbox, tmp_path: Path, trick: str
) -> None:
    file = tmp_path / "trick.mp4"
    file.write_text(LISTS[trick], encoding="utf-8")
    said = refused_or_clean(media_box, tmp_path, file, "VideoClip")
    assert said.startswith("`inputs/trick.mp4` cannot be read as audio or video: ")
    assert "outputs/" not in said


def test_a_playlist_beside_a_real_video_gives_nothing_of_it(
    media_box: Toolbox, tmp_path: Path
) -> None:
    secret = make_video(tmp_path / "secret.mp4", seconds=1)
    trick = tmp_path / "trick.mp4"
    trick.write_text(LISTS["hls"], encoding="utf-8")
    workspace = workspace_of(tmp_path, secret, trick)
    for tool, argument in (("VideoClip", "video"), ("AudioClipTool", "audio")):
        with pytest.raises(
            ToolError, match="it is a playlist or another format that is not supported"
        ):
            call(media_box, workspace, tool, **{argument: "trick.mp4"})
    assert workspace.outputs().files == ()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def half_a_video(file: Path) -> None:
    whole = make_video(file.with_name("whole.mp4"), seconds=2).read_bytes()
    file.write_bytes(whole[: len(whole) // 2])


def half_a_fast_video(file: Path) -> None:
    options = ("-c:v", "libx264", "-movflags", "+faststart")
    whole = make_video(file.with_name("whole.mp4"), seconds=2, options=options).read_bytes()
    file.write_bytes(whole[: len(whole) // 2])


def only_a_header(file: Path) -> None:
    options = ("-c:v", "libx264", "-movflags", "+faststart")
    whole = make_video(file.with_name("whole.mp4"), seconds=2, options=options).read_bytes()
    file.write_bytes(whole[: whole.index(b"mdat") + 4])


def no_frames(file: Path) -> None:
    """A video of zero length."""
    nothing = ("-f", "lavfi", "-i", "testsrc=size=64x64:duration=1", "-frames:v", "0")
    ffmpeg(*nothing, "-c:v", "libx264", "-movflags", "empty_moov", str(file))


def huge_pictures(file: Path, side: int = 16_000) -> None:
    """A video of JPEG pictures, each of which claims that many pixels on both sides."""
    options = ("-c:v", "mjpeg")
    small = make_video(
        file.with_name("small.avi"), seconds=0.2, size="16x16", sound=False, options=options
    ).read_bytes()
    sizes = struct.pack(">HH", side, side)
    pictures = re.sub(rb"(\xff\xc0..\x08)\x00\x10\x00\x10", rb"\1" + sizes, small, flags=re.DOTALL)
    assert pictures != small
    header, claimed = struct.pack("<ii", 16, 16), struct.pack("<ii", side, side)
    file.write_bytes(pictures.replace(header, claimed))


def noise(file: Path) -> None:
    head = make_video(file.with_name("whole.mp4"), seconds=1).read_bytes()
    file.write_bytes(head[:2000] + bytes(range(256)) * 400)


def shuffled(file: Path) -> None:
    """Every 97th byte is wrong."""
    content = bytearray(make_video(file.with_name("whole.mp4"), seconds=2).read_bytes())
    for place in range(500, len(content), 97):
        content[place] ^= 0x5A
    file.write_bytes(content)


BROKEN = (
    *(empty, half_a_video, half_a_fast_video, only_a_header, no_frames),
    *(huge_pictures, noise, shuffled),
)


@pytest.mark.slow
@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("tool", ["VideoClip", "AudioClipTool"])
def test_a_broken_video_is_told_or_mended(
    media_box: Toolbox, tmp_path: Path, damage: Callable[[Path], None], tool: str
) -> None:
    file = tmp_path / "broken.mp4"
    damage(file)
    said = refused_or_clean(media_box, tmp_path, file, tool)
    assert said.startswith(("`inputs/broken.mp4`", "[video](outputs/", "[audio](outputs/", "The s"))
    if damage in (empty, half_a_video, no_frames, huge_pictures):
        assert "outputs/" not in said


@pytest.mark.parametrize(
    ("side", "told"),
    [
        (16_000, "has 16000x16000 pixels; the limit is 8192x4320."),
        (60_000, "has a video track without a size."),
    ],
)
def test_a_header_with_a_huge_picture_is_refused_by_its_size(
    media_box: Toolbox, tmp_path: Path, side: int, told: str
) -> None:
    file = tmp_path / "huge.avi"
    huge_pictures(file, side)
    said = refused_or_clean(media_box, tmp_path, file, "VideoClip")
    assert said == f"`inputs/huge.avi` {told}"


@pytest.mark.slow
def test_a_truncated_recording_gives_what_is_left(media_box: Toolbox, tmp_path: Path) -> None:
    for name in ("tones.wav", "tones.mp3", "tones.flac"):
        whole = make_stereo(tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        workspace = workspace_of(tmp_path / name.replace(".", "_"), tmp_path / name)
        result = call(media_box, workspace, "AudioClipTool", audio=name)
        assert 2.2 < heard(made_file(workspace, result)).shape[1] / 44_100 < 2.8


def test_a_wav_header_that_claims_a_thousand_channels_is_refused(
    media_box: Toolbox, tmp_path: Path
) -> None:
    content = bytearray(make_stereo(tmp_path / "tones.wav", seconds=0.1).read_bytes())
    content[22:24] = struct.pack("<H", 1000)
    (tmp_path / "tones.wav").write_bytes(content)
    said = refused_or_clean(media_box, tmp_path, tmp_path / "tones.wav", "AudioClipTool")
    assert "outputs/" not in said


def test_a_picture_and_a_document_are_neither_sound_nor_video(
    media_box: Toolbox, tmp_path: Path
) -> None:
    picture = tmp_path / "picture.mp4"
    ffmpeg(
        "-f", "lavfi", "-i", "testsrc=size=64x64", "-frames:v", "1", "-f", "image2", str(picture)
    )
    said = refused_or_clean(media_box, tmp_path, picture, "VideoClip")
    assert "cannot be read as audio or video" in said


def test_an_unknown_file_is_told_with_the_files_there_are(
    media_box: Toolbox, tmp_path: Path
) -> None:
    workspace = workspace_of(tmp_path, make_stereo(tmp_path / "tones.wav", seconds=0.1))
    with pytest.raises(ToolError, match=r"There is no file .*Files: `inputs/tones.wav`"):
        call(media_box, workspace, "AudioClipTool", audio="/etc/passwd")
