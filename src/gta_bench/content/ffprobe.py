"""What ffprobe says of a sound or film, as types."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from gta_bench.errors import ToolError


@dataclass(frozen=True, slots=True)
class VideoStream:
    """Moving pictures; the rate is in frames a second, None where the file does not say."""

    codec: str
    width: int
    height: int
    rate: float | None


@dataclass(frozen=True, slots=True)
class AudioStream:
    """Sound."""

    codec: str
    sample_rate: int
    channels: int


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """What a file holds: its container, its length, its first film and sound stream.

    `container` are ffprobe's names of the format that it really has. `seconds` is None where the
    file does not say it. `tags` are what it says of itself, titles of chapters among them;
    `subtitles` counts its streams of text, `others` names what is not looked at.
    """

    container: str
    seconds: float | None
    video: VideoStream | None
    audio: AudioStream | None
    tags: tuple[tuple[str, str], ...] = ()
    subtitles: int = 0
    others: tuple[str, ...] = ()

    def as_text(self) -> str:
        """One line a fact."""
        length = "unknown" if self.seconds is None else f"{self.seconds:.2f} s"
        lines = [f"Container: {self.container}", f"Length: {length}"]
        if self.video is not None:
            rate = f", {self.video.rate:g} frames/s" if self.video.rate else ""
            size = f"{self.video.width} x {self.video.height}"
            lines.append(f"Video: {self.video.codec}, {size}{rate}")
        if self.audio is not None:
            sound = self.audio
            lines.append(f"Audio: {sound.codec}, {sound.sample_rate} Hz, {sound.channels} channels")
        return "\n".join(lines if self.audio else [*lines, "Audio: none"])


_PROGRAMS = frozenset({
    "encoder", "major_brand", "minor_version", "compatible_brands", "handler_name", "vendor_id",
    "language", "duration", "creation_time", "bps", "number_of_frames", "number_of_bytes",
    "mimetype", "filename",
})  # fmt: skip


class Probed(NamedTuple):
    """What was found, and the time at which the file's clock begins."""

    info: MediaInfo
    start: float


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Disposition(_Reply):
    attached_pic: int = 0


class _Tagged(_Reply):
    tags: dict[str, str] = {}


class _Stream(_Tagged):
    codec_type: str = ""
    codec_name: str = "unknown"
    width: int = 0
    height: int = 0
    avg_frame_rate: str = "0/0"
    duration: str | None = None
    sample_rate: str = "0"
    channels: int = 0
    disposition: _Disposition = _Disposition()


class _Format(_Tagged):
    format_name: str = "unknown"
    duration: str | None = None
    start_time: str | None = None


class _Probe(_Reply):
    format: _Format = _Format()
    streams: tuple[_Stream, ...] = ()
    chapters: tuple[_Tagged, ...] = ()


def parse_probe(reply: bytes) -> Probed:
    """The JSON of ffprobe; ToolError where there is neither film nor sound in the file."""
    try:
        probe = _Probe.model_validate_json(reply)
    except ValidationError as exc:
        raise ToolError("ffprobe gave a reply that cannot be read.") from exc
    videos = [
        s for s in probe.streams if s.codec_type == "video" and not s.disposition.attached_pic
    ]
    sounds = [s for s in probe.streams if s.codec_type == "audio"]
    if not videos and not sounds:
        raise ToolError("The file holds neither film nor sound.")
    lengths = [_seconds(probe.format.duration), *(_seconds(s.duration) for s in probe.streams)]
    info = MediaInfo(
        container=probe.format.format_name,
        seconds=next((length for length in lengths if length is not None), None),
        video=_video(videos[0]) if videos else None,
        audio=_audio(sounds[0]) if sounds else None,
        tags=tuple(_tags(probe)),
        subtitles=sum(s.codec_type == "subtitle" for s in probe.streams),
        others=tuple(_others(probe.streams, len(videos), len(sounds))),
    )
    return Probed(info, _seconds(probe.format.start_time) or 0.0)


def _tags(probe: _Probe) -> Iterator[tuple[str, str]]:
    """Titles, names and comments; what programs write of themselves is left out."""
    for tagged in (probe.format, *probe.streams, *probe.chapters):
        for name, value in tagged.tags.items():
            if name.lower() not in _PROGRAMS and not name.startswith("_") and value.strip():
                yield name, " ".join(value.split())


def _others(streams: Sequence[_Stream], videos: int, sounds: int) -> Iterator[str]:
    if any(stream.disposition.attached_pic for stream in streams):
        yield "its cover picture"
    if videos > 1:
        yield f"all but the first of its {videos} film tracks"
    if sounds > 1:
        yield f"all but the first of its {sounds} sound tracks"
    strange = sum(stream.codec_type in ("attachment", "data") for stream in streams)
    if strange:
        yield f"{strange} attached files or data tracks"


def parse_times(lines: bytes) -> tuple[float, ...]:
    """The times of packets in the order of showing; those marked to be dropped are left out."""
    times = []
    for line in lines.decode("ascii", "replace").splitlines():
        time, _, flags = line.partition(",")
        seconds = _seconds(time)
        if seconds is not None and "D" not in flags:
            times.append(seconds)
    return tuple(sorted(set(times)))


def _video(stream: _Stream) -> VideoStream:
    try:
        rate = float(Fraction(stream.avg_frame_rate))
    except (ValueError, ZeroDivisionError):
        rate = None
    return VideoStream(stream.codec_name, stream.width, stream.height, rate or None)


def _audio(stream: _Stream) -> AudioStream:
    return AudioStream(stream.codec_name, int(_seconds(stream.sample_rate) or 0), stream.channels)


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and isfinite(number) else None
