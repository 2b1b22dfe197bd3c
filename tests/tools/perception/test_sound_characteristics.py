import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from gta_bench.errors import ToolError
from gta_bench.tools.toolbox import Toolbox
from tests.tools.media_files import call, ffmpeg, make_stereo, workspace_of

librosa = pytest.importorskip("librosa")

pytestmark = pytest.mark.slow


def test_the_figures_are_those_of_librosa_itself(media_box: Toolbox, tmp_path: Path) -> None:
    """As upstream computes them: librosa.load, then mean and variance over time."""
    file = make_stereo(tmp_path / "tones.wav", seconds=3)
    result = call(
        media_box, workspace_of(tmp_path, file), "SoundCharacteristicExtraction", audio="tones.wav"
    )
    figures = json.loads(result.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # audioread imports aifc
        wave, rate = librosa.load(file, sr=22_050)
    mfcc = librosa.feature.mfcc(y=wave, sr=rate, n_mfcc=13)
    assert figures["mfcc"]["mean"] == pytest.approx(mfcc.mean(axis=1).tolist(), rel=1e-3, abs=1e-2)
    assert figures["mfcc"]["var"] == pytest.approx(mfcc.var(axis=1).tolist(), rel=1e-2, abs=1e-1)
    expected = {
        "spectral_centroid": librosa.feature.spectral_centroid(y=wave, sr=rate),
        "spectral_rolloff": librosa.feature.spectral_rolloff(y=wave, sr=rate),
        "zero_crossing_rate": librosa.feature.zero_crossing_rate(wave),
    }
    for name, feature in expected.items():
        assert figures[name]["mean"] == pytest.approx(float(np.mean(feature)), rel=1e-3)
        assert figures[name]["var"] == pytest.approx(float(np.var(feature)), rel=1e-2, abs=1e-6)
    assert list(figures) == ["mfcc", *expected]


@pytest.mark.parametrize("source", ["anullsrc=d=2", "sine=440:d=0.01", "sine=440:r=8000:d=1"])
def test_silence_and_very_short_sounds_have_finite_figures(
    media_box: Toolbox, tmp_path: Path, source: str
) -> None:
    file = tmp_path / "sound.wav"
    ffmpeg("-f", "lavfi", "-i", source, str(file))
    result = call(
        media_box, workspace_of(tmp_path, file), "SoundCharacteristicExtraction", audio="sound.wav"
    )
    assert "NaN" not in result.text
    assert len(json.loads(result.text)["mfcc"]["mean"]) == 13


def test_sound_that_is_longer_than_it_can_hold_is_refused(
    media_box: Toolbox, tmp_path: Path
) -> None:
    file = tmp_path / "long.mp3"
    ffmpeg("-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono:d=730", "-b:a", "8k", str(file))
    with pytest.raises(ToolError, match="is longer than 12 minutes"):
        call(
            media_box,
            workspace_of(tmp_path, file),
            "SoundCharacteristicExtraction",
            audio="long.mp3",
        )
