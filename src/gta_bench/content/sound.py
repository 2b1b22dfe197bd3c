"""What can be measured of sound without listening: loudness, silence, its waveform."""

import re
from dataclasses import dataclass, field
from typing import Final

from gta_bench.confine.jail import Jail
from gta_bench.content.ffprobe import MediaInfo
from gta_bench.content.media import FROM_SOURCE, MediaSource, run
from gta_bench.errors import ToolError

MOST_SECONDS: Final = 1800.0
SILENCE: Final = -50.0  # dBFS
SHORTEST_SILENCE: Final = 0.5  # seconds
LOWEST_LEVEL, LOWEST_LOUDNESS = -90.0, -70.0  # what ffmpeg says of nothing
WAVEFORM: Final = "waveform.png"
SIZE: Final = "1200x300"
MEAN: Final = re.compile(r"mean_volume: (-?[\d.]+|-inf) dB")
PEAK: Final = re.compile(r"max_volume: (-?[\d.]+|-inf) dB")
LOUDNESS: Final = re.compile(r"Integrated loudness:\s+I:\s+(-?[\d.]+|-?inf|nan) LUFS")
SILENT: Final = re.compile(r"silence_duration: ([\d.]+)")
SILENCE_START: Final = re.compile(r"silence_start: (-?[\d.]+)")


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """A sound track in numbers; levels are in dBFS, None where it is silent throughout.

    `silent` is the share of time below -50 dBFS, in stretches of at least half a second.
    """

    mean_level: float | None
    peak_level: float | None
    loudness: float | None
    silent: float
    waveform: bytes = field(repr=False)


async def measure_sound(source: MediaSource, jail: Jail, info: MediaInfo) -> SoundFacts:
    """Measure the first half hour of the first sound track; ToolError if it cannot be decoded."""
    detect = f"silencedetect=noise={SILENCE}dB:d={SHORTEST_SILENCE}"
    graph = (
        f"[0:a:0]asplit[one][two];"
        f"[one]{detect},volumedetect,ebur128=framelog=verbose,anullsink;"
        f"[two]aformat=channel_layouts=mono,showwavespic=s={SIZE}:colors=0x1f6feb[wave];"
        f"color=c=white:s={SIZE}[paper];[paper][wave]overlay=shortest=1[picture]"
    )
    argv = ["ffmpeg", "-v", "info", "-nostdin", "-nostats", "-hide_banner"]
    argv += ["-t", f"{MOST_SECONDS:g}", *FROM_SOURCE, "-filter_complex", graph]
    argv += ["-map", "[picture]", "-frames:v", "1", WAVEFORM]
    result = await run(argv, source, jail)
    words = result.stderr.decode("utf-8", "replace")
    if WAVEFORM not in result.files or not MEAN.search(words):
        raise ToolError("The sound cannot be decoded.")
    return SoundFacts(
        mean_level=_number(MEAN, words, floor=LOWEST_LEVEL),
        peak_level=_number(PEAK, words, floor=LOWEST_LEVEL),
        loudness=_number(LOUDNESS, words, floor=LOWEST_LOUDNESS),
        silent=_silent_share(words, info),
        waveform=result.files[WAVEFORM],
    )


def _number(pattern: re.Pattern[str], words: str, *, floor: float) -> float | None:
    """The last such number, because ffmpeg sets its filters up twice and reports both."""
    found = pattern.findall(words)
    value = float(found[-1]) if found else floor
    return value if value > floor else None


def _silent_share(words: str, info: MediaInfo) -> float:
    length = min(info.seconds or 0.0, MOST_SECONDS)
    if not length:
        return 0.0
    silent = sum(float(found) for found in SILENT.findall(words))
    starts = SILENCE_START.findall(words)
    if words.rfind("silence_start") > words.rfind("silence_end"):  # the end's is not reported
        silent += max(0.0, length - float(starts[-1]))
    return round(min(1.0, silent / length), 3)
