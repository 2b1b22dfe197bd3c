"""NoiseReduction and PitchShifting."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.toolbox import Toolbox
from tests.conftest import REPOSITORY
from tests.tools.media_files import (
    call,
    ffmpeg,
    fundamental,
    heard,
    made_file,
    make_stereo,
    make_video,
    streams,
    workspace_of,
)

pytest.importorskip("librosa")
pytest.importorskip("noisereduce")

NOISY = (
    "aevalsrc=0.3*sin(2*PI*440*t)*between(mod(t\\,1)\\,0.5\\,0.7)+0.02*(random(0)-0.5)|"
    "0.3*sin(2*PI*660*t)*between(mod(t\\,1)\\,0.5\\,0.7)+0.02*(random(1)-0.5):s=44100:d=6"
)


@pytest.fixture
def tones(tmp_path: Path) -> Workspace:
    return workspace_of(tmp_path, make_stereo(tmp_path / "tones.wav"))


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "factor"), [(12, 2.0), (-12, 0.5), (7, 2 ** (7 / 12))])
def test_the_fundamental_of_each_channel_moves_by_the_semitones(
    media_box: Toolbox, tones: Workspace, steps: int, factor: float
) -> None:
    result = call(media_box, tones, "PitchShifting", audio="tones.wav", n_steps=steps)
    left, right = heard(made_file(tones, result))
    assert left.size == 5 * 44_100
    assert fundamental(left) == pytest.approx(440 * factor, rel=0.01)
    assert fundamental(right) == pytest.approx(660 * factor, rel=0.01)
    assert result.backend.startswith("librosa 0.11.0, ffmpeg ")
    assert len(result.parts) == 1


def test_without_a_number_of_semitones_the_pitch_stays_and_the_result_says_so(
    media_box: Toolbox, tones: Workspace
) -> None:
    result = call(media_box, tones, "PitchShifting", audio="tones.wav", output_dir="anywhere")
    assert result.parts[1].content == "n_steps is 0, so the pitch is unchanged."
    whole = heard(tones.root / "inputs" / "tones.wav")
    assert np.array_equal(heard(made_file(tones, result)), whole)


@pytest.mark.parametrize("steps", [25, -24.5, float("nan"), float("inf"), "high"])
def test_intervals_beyond_two_octaves_are_refused(
    media_box: Toolbox, tones: Workspace, steps: float | str
) -> None:
    with pytest.raises(ToolError, match="argument 'n_steps'"):
        call(media_box, tones, "PitchShifting", audio="tones.wav", n_steps=steps)


@pytest.mark.slow
def test_an_mp3_stays_an_mp3_in_both_tools(media_box: Toolbox, tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path, make_stereo(tmp_path / "tones.mp3", seconds=3))
    for tool, name in (("PitchShifting", "tones_shifted"), ("NoiseReduction", "tones_denoised")):
        result = call(media_box, workspace, tool, audio="tones.mp3")
        assert result.parts[0].content == f"outputs/{name}.mp3"
        file = made_file(workspace, result)
        assert streams(file)["audio"]["codec_name"] == "mp3"
        assert heard(file).shape[1] / 44_100 == pytest.approx(3, abs=0.05)


@pytest.mark.slow
def test_steady_noise_goes_and_short_tones_stay_in_their_channels(
    media_box: Toolbox, tmp_path: Path
) -> None:
    source = tmp_path / "noisy.wav"
    ffmpeg("-f", "lavfi", "-i", NOISY, str(source))
    workspace = workspace_of(tmp_path, source)
    result = call(media_box, workspace, "NoiseReduction", audio="noisy.wav")
    before, after = heard(source), heard(made_file(workspace, result))
    assert after.shape == before.shape
    pause, tone = slice(93_000, 106_000), slice(111_000, 118_000)
    assert after[:, pause].std() < 0.2 * before[:, pause].std()
    assert fundamental(after[0, tone]) == pytest.approx(440, abs=7)
    assert fundamental(after[1, tone]) == pytest.approx(660, abs=7)
    assert after[:, tone].std() > 0.5 * before[:, tone].std()
    assert result.backend.startswith("noisereduce 3.0.3, ffmpeg ")


@pytest.mark.slow
@pytest.mark.parametrize("rate", [4_000, 8_000, 192_000])
@pytest.mark.parametrize("tool", ["NoiseReduction", "PitchShifting"])
def test_unusual_rates_and_very_short_sounds_work(
    media_box: Toolbox, tmp_path: Path, tool: str, rate: int
) -> None:
    source = tmp_path / "blip.wav"
    ffmpeg("-f", "lavfi", "-i", f"sine=300:sample_rate={rate}:duration=0.05", str(source))
    workspace = workspace_of(tmp_path, source)
    arguments = {"n_steps": 3} if tool == "PitchShifting" else {}
    result = call(media_box, workspace, tool, audio="blip.wav", **arguments)
    made = made_file(workspace, result)
    assert heard(made, rate=rate).shape == heard(source, rate=rate).shape


def test_a_video_without_sound_is_refused(media_box: Toolbox, tmp_path: Path) -> None:
    source = make_video(tmp_path / "silent.mp4", seconds=1, sound=False)
    workspace = workspace_of(tmp_path, source)
    with pytest.raises(ToolError, match=r"`inputs/silent.mp4` has no sound"):
        call(media_box, workspace, "NoiseReduction", audio="silent.mp4")


MEMORY = """
import sys
from pathlib import Path
import numpy as np
from gta_bench.tools.media.effects import reduce_noise, shift_pitch
noise = np.random.default_rng(0).normal(0, 0.1, (2, int(sys.argv[1]) * 44100)).astype(np.float32)
assert reduce_noise(noise, 44100).shape == noise.shape
assert shift_pitch(noise, 44100, 12).shape == noise.shape
status = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")))
"""


def megabytes(seconds: int) -> int:
    """The most memory that both effects take, in a process of their own.

    Not by `getrusage`: its figure survives `exec`, so a child starts at its parent's peak.
    """
    command = [sys.executable, "-c", MEMORY, str(seconds)]
    source = {"PYTHONPATH": str(REPOSITORY / "src"), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=source)
    return int(ran.stdout)


@pytest.mark.measure
def test_five_seconds_of_stereo_stay_under_a_gibibyte_and_minutes_do_too() -> None:
    """Upstream's axes were wrong: 98.6 GiB asked for, and 22 GB before the kernel ended it."""
    short = megabytes(5)
    long = megabytes(180)
    print(f"5 s: {short} MB, 180 s: {long} MB")
    assert short < 1024
    assert long < 1500
