"""Sound as raw samples and back, decoded and encoded by ffmpeg in the jail; and time spans."""

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB
from gta_bench.errors import ToolError
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import Media, ProbedFile

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

MOST_BYTES = 256 * MIB  # 12 minutes of stereo at 44100 Hz
SAMPLE = 4
RAW = "raw"
SLACK = 0.02  # seconds by which containers round a length


class Span(NamedTuple):
    """A time span in seconds; without `end`, it lasts to the end of the recording."""

    start: float = 0.0
    end: float | None = None


WHOLE = Span()


@dataclass(frozen=True)
class Samples:
    """Decoded sound: 32-bit floats, the channels of one moment side by side."""

    data: bytes
    rate: int
    channels: int

    @property
    def seconds(self) -> float:
        """Return the length in seconds."""
        return len(self.data) / (SAMPLE * self.channels * self.rate)

    def array(self) -> "NDArray[float32]":
        """Return one row per channel; invalid numbers become silence."""
        import numpy as np

        flat = np.frombuffer(self.data, dtype="<f4")
        rows = flat.reshape(-1, self.channels).T.copy()
        np.nan_to_num(rows, copy=False, posinf=0.0, neginf=0.0)
        return rows

    def replaced(self, rows: "NDArray[float32]") -> "Samples":
        """Return other samples at the same rate, one row per channel."""
        return Samples(rows.T.astype("<f4").tobytes(), self.rate, rows.shape[0])


class Format(NamedTuple):
    """An audio format: the suffix of its files and ffmpeg's arguments."""

    suffix: str
    arguments: tuple[str, ...]


WAV = Format(".wav", ("-c:a", "pcm_s16le", "-f", "wav"))
WAV_CODECS = (
    *("pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le"),
    *("pcm_alaw", "pcm_mulaw"),
)
LOSSY_RATE = 192_000


async def decode(
    jail: Jail,
    source: ProbedFile,
    *,
    span: Span = WHOLE,
    rate: int | None = None,
    mono: bool = False,
) -> Samples:
    """Decode the sound of a file, on request at another rate or mixed to one channel.

    Times count from the first sample, whatever time stamps the file has.
    """
    track = source.need_sound()
    channels, wanted = 1 if mono else track.channels, rate or track.rate
    end = "" if span.end is None else f":end={span.end:.6f}"
    trim = f"asetpts=N/SR/TB,atrim=start={span.start:.6f}{end}"
    arguments = [*ffmpeg.reading(), "-map", "0:a:0", "-af", trim]
    arguments += ["-ac", str(channels), "-ar", str(wanted), "-f", "f32le"]
    arguments += ["-fs", str(MOST_BYTES + SAMPLE), RAW]
    problem = f"The sound of `{source.path}` cannot be decoded"
    made = await ffmpeg.convert(jail, {ffmpeg.INPUT: source.data}, arguments, problem=problem)
    raw = made.get(RAW, b"")
    if len(raw) > MOST_BYTES:
        most = MOST_BYTES / (SAMPLE * channels * wanted) / 60
        raise ToolError(f"`{source.path}` is too long: the limit is {most:.1f} minutes.")
    whole = len(raw) // (SAMPLE * channels) * SAMPLE * channels
    if not whole:
        raise ToolError(f"`{source.path}` has no sound after {span.start:g} s.")
    return Samples(raw[:whole], wanted, channels)


async def encode(jail: Jail, samples: Samples, form: Format) -> bytes:
    """Return samples as a file of that format."""
    layout = ["-f", "f32le", "-ar", str(samples.rate), "-ac", str(samples.channels)]
    source = ["-protocol_whitelist", "file,pipe", *layout, "-i", f"file:../inputs/{RAW}"]
    name = f"made{form.suffix}"
    arguments = [*source, *form.arguments, name]
    problem = f"The sound cannot be written as {form.suffix[1:]}"
    made = await ffmpeg.convert(jail, {RAW: samples.data}, arguments, problem=problem)
    return made[name]


def find_format(media: Media) -> Format:
    """Return the format of a recording, by content and not by name; WAV for rare ones."""
    track = media.sound
    codec = "" if track is None else track.codec
    bits = str(LOSSY_RATE)
    if track is not None and track.bit_rate is not None:
        bits = str(min(max(track.bit_rate, 32_000), 320_000))
    if media.container == "wav" and codec in WAV_CODECS:
        return Format(".wav", ("-c:a", codec, "-f", "wav"))
    if media.container == "ogg" and codec == "opus":
        return Format(".opus", ("-c:a", "libopus", "-b:a", bits))
    if media.container == "mov" and codec == "alac":
        return Format(".m4a", ("-c:a", "alac"))
    known = {
        "mp3": Format(".mp3", ("-c:a", "libmp3lame", "-b:a", bits)),
        "flac": Format(".flac", ("-c:a", "flac")),
        "ogg": Format(".ogg", ("-c:a", "libvorbis", "-q:a", "6")),
        "aiff": Format(".aiff", ("-c:a", "pcm_s16be")),
        "mov": Format(".m4a", ("-c:a", "aac", "-b:a", bits, "-movflags", "+faststart")),
        "aac": Format(".aac", ("-c:a", "aac", "-b:a", bits)),
    }
    return known.get(media.container, WAV)


def read_span(start: float | None, end: float | None, *, seconds: float | None, path: str) -> Span:
    """Return the span of an agent's arguments; None means from the start, or to the end."""
    begin = 0.0 if start is None else start
    for name, value in (("start_time", begin), ("end_time", end)):
        if value is not None and (not isfinite(value) or value < 0):
            raise ToolError(f"{name} is {value:g}; write seconds from the start, 0 or more.")
    if end is not None and end <= begin:
        raise ToolError(f"end_time ({end:g} s) must be later than start_time ({begin:g} s).")
    if seconds is not None and begin >= seconds:
        raise ToolError(f"`{path}` is {seconds:.2f} s long; start_time is {begin:g} s.")
    return Span(begin, end)


def shortfall(span: Span, got: float) -> str | None:
    """Return a sentence for the agent if the recording ended before the span did."""
    if span.end is None or got >= span.end - span.start - SLACK:
        return None
    asked = span.end - span.start
    return f"The recording ends early: the clip has {got:.2f} s instead of {asked:.2f} s."
