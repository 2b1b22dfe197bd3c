"""SoundCharacteristicExtraction: mean and variance of four features, as JSON."""

import json
from typing import TYPE_CHECKING

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, text
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import Samples, decode
from gta_bench.tools.packages import find_missing, name_and_version

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

RATE = 22_050  # upstream's, and librosa's default
MFCCS = 13
MOST_MINUTES = 12


class SoundCharacteristicInput(ToolInput):
    """A recording."""

    audio: str = Field(description="Path to the input audio file.")


class SoundCharacteristicExtraction(Tool[SoundCharacteristicInput]):
    """The same figures as `librosa.load` and `librosa.feature`, with decoding in the jail."""

    name = "SoundCharacteristicExtraction"
    category = "perception"
    description = (
        "This tool extracts sound characteristics (MFCC, spectral centroid, spectral rolloff, "
        "and zero crossing rate) from an audio file and returns the mean and variance of each "
        "feature in JSON format."
    )
    version = "1"
    input_type = SoundCharacteristicInput
    outputs = (Parameter(type="text", description="The characteristics as a JSON string."),)

    def check(self) -> Availability:
        missing = find_missing("librosa", "numpy", extra="media")
        return missing or ffmpeg.missing(self.equipment) or Available(_backend())

    async def apply(self, workspace: Workspace, given: SoundCharacteristicInput) -> Made:
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.audio)
        samples = await decode(jail, source)
        if samples.seconds > MOST_MINUTES * 60:
            raise ToolError(f"`{source.path}` is longer than {MOST_MINUTES} minutes.")
        figures = await self.equipment.in_thread(_measure, samples)
        return Made((text(json.dumps(figures)),), backend=_backend(), jail=jail.kind)


def _measure(samples: Samples) -> dict[str, dict[str, float | list[float]]]:
    """Return mean and variance over time of each feature of the mono mix."""
    import librosa
    import numpy as np

    mono = samples.array().mean(axis=0)
    mono = librosa.resample(mono, orig_sr=samples.rate, target_sr=RATE)
    mono = np.pad(mono, (0, max(0, 2048 - mono.size)))  # one window, or librosa warns
    mfcc = librosa.feature.mfcc(y=mono, sr=RATE, n_mfcc=MFCCS)
    return {
        "mfcc": {"mean": mfcc.mean(axis=1).tolist(), "var": mfcc.var(axis=1).tolist()},
        "spectral_centroid": _summarize(librosa.feature.spectral_centroid(y=mono, sr=RATE)),
        "spectral_rolloff": _summarize(librosa.feature.spectral_rolloff(y=mono, sr=RATE)),
        "zero_crossing_rate": _summarize(librosa.feature.zero_crossing_rate(mono)),
    }


def _summarize(feature: "NDArray[float32]") -> dict[str, float | list[float]]:
    return {"mean": float(feature.mean()), "var": float(feature.var())}


def _backend() -> str:
    return f"{name_and_version('librosa')}, {ffmpeg.program().backend}"
