"""Sound in numbers, and the size of pictures that programs made."""

import asyncio
import io
from pathlib import Path

import pytest
from PIL import Image

from gta_bench.confine.jail import Jail
from gta_bench.content.images import measure_picture
from gta_bench.content.media import SoundFacts, measure_sound, probe_media
from gta_bench.errors import ToolError
from tests.content import samples
from tests.content.films import ffmpeg
from tests.needs import needs

pytestmark = needs("ffmpeg")


def measured(data: bytes, jail: Jail) -> SoundFacts:
    async def both() -> SoundFacts:
        return await measure_sound(data, jail, await probe_media(data, jail))

    return asyncio.run(both())


def test_a_tone_and_then_nothing(tmp_path: Path, jail: Jail) -> None:
    source = ("-f", "lavfi", "-i", "aevalsrc=0.5*sin(2*PI*1000*t):s=44100:d=3")
    found = measured(ffmpeg(tmp_path, "a.wav", *source, "-af", "apad=pad_dur=1"), jail)
    assert found.peak_level == pytest.approx(-6, abs=0.2)
    assert found.mean_level == pytest.approx(-10.3, abs=0.3)
    assert found.loudness == pytest.approx(-9, abs=1.5)
    assert found.silent == pytest.approx(0.25, abs=0.02)
    assert measure_picture(found.waveform) == ("image/png", 1200, 300)
    wave = Image.open(io.BytesIO(found.waveform)).convert("RGB")
    assert wave.getpixel((300, 150)) != (255, 255, 255)
    assert wave.getpixel((1100, 100)) == (255, 255, 255)


def test_nothing_at_all(tmp_path: Path, jail: Jail) -> None:
    data = ffmpeg(tmp_path, "a.wav", "-f", "lavfi", "-i", "anullsrc", "-t", "2")
    found = measured(data, jail)
    assert (found.mean_level, found.peak_level, found.loudness) == (None, None, None)
    assert found.silent == 1.0


def test_sound_that_cannot_be_decoded_is_an_error(tmp_path: Path, jail: Jail) -> None:
    data = ffmpeg(tmp_path, "a.mp4", "-f", "lavfi", "-i", "testsrc=d=1")
    with pytest.raises(ToolError, match="cannot be decoded"):
        measured(data, jail)


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_the_size_of_a_picture_is_read_from_its_head(form: str) -> None:
    assert measure_picture(samples.image(123, 45, form)) == (f"image/{form.lower()}", 123, 45)


def test_a_progressive_photograph_with_a_comment_is_measured() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (70, 30)).save(stream, "JPEG", progressive=True, comment=b"x" * 9000)
    assert measure_picture(stream.getvalue())[1:] == (70, 30)


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xd9"])
def test_what_is_no_picture_of_ours_is_refused(data: bytes) -> None:
    with pytest.raises(ToolError):
        measure_picture(data)
