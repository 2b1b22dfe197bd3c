"""Sound and film: length, streams, frames at even times, the sound track."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, ProgramResult
from gta_bench.content.needs import missing_ffmpeg, require
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


# Until here decoding a whole film once is cheaper than seeking, or dear but bounded.
FRAMES_A_SEEK = 100  # of which a seek decodes some, from the last whole picture on
PIXELS_IN_ALL = 1_500_000_000
FORM = "jpg"
QUALITY = ["-q:v", "3", "-pix_fmt", "yuvj420p"]
QUIET = ["ffmpeg", "-v", "error", "-nostdin"]


class Choice(NamedTuple):
    """Frames to take: the times of all, the places of the chosen, and when the clock begins."""

    times: Sequence[float]
    places: Sequence[int]
    start: float

    def seconds(self, place: int) -> float:
        """A frame's time after the first one."""
        return self.times[place] - self.times[0]

    def before(self, place: int) -> float:
        """A time between a frame and the one before it, on ffmpeg's clock."""
        times = self.times
        return (times[place - 1] + times[place]) / 2 - self.start if place else -1.0

    def after(self, place: int) -> float:
        """A time between a frame and the one after it, on ffmpeg's clock."""
        last = place + 1 == len(self.times)
        return self.times[place] - self.start + 1.0 if last else self.before(place + 1)

    def is_dense(self, *, pixels: int) -> bool:
        """Whether to decode the whole film for these frames rather than to seek each of them."""
        count = len(self.times)
        return 0 < count <= FRAMES_A_SEEK * len(self.places) and count * pixels <= PIXELS_IN_ALL


def even_choice(times: Sequence[float], wanted: int) -> list[int]:
    """Places in an ordered list of times, at even times, the first and the last included."""
    if wanted < 1 or not times:
        return []
    if wanted == 1 or len(times) == 1:
        return [0]
    start, step = times[0], (times[-1] - times[0]) / (wanted - 1)
    nearest = (_nearest(times, start + step * number) for number in range(wanted))
    return list(dict.fromkeys(nearest))


def _nearest(times: Sequence[float], wanted: float) -> int:
    after = min(bisect_left(times, wanted), len(times) - 1)
    before = max(after - 1, 0)
    return before if wanted - times[before] <= times[after] - wanted else after


def one_pass(choice: Choice, source: Sequence[str], longest_side: int) -> list[str]:
    """The chosen frames from one decoding of the film, each within a window of its own."""
    windows = [f"between(t,{choice.before(at):.6f},{choice.after(at):.6f})" for at in choice.places]
    chain = f"select='{'+'.join(windows)}',{_fit(longest_side)}"
    argv = [*QUIET, *source, "-map", "0:V:0", "-vf", chain, "-fps_mode", "passthrough", *QUALITY]
    return [*argv, "-start_number", "0", f"%d.{FORM}"]


def one_seek_each(choice: Choice, source: Sequence[str], longest_side: int) -> list[str]:
    """The chosen frames in one run, the file opened for each and read from shortly before it."""
    argv = list(QUIET)
    for at in choice.places:
        seek = ["-ss", f"{choice.before(at):.6f}"] if choice.before(at) > 0 else []
        argv += ["-threads", "1", *seek, *source]
    for number in range(len(choice.places)):
        argv += ["-map", f"{number}:V:0", "-frames:v", "1", "-vf", _fit(longest_side), *QUALITY]
        argv += ["-update", "1", "-threads", "1", f"{number}.{FORM}"]
    return argv


def pictures_of(result: ProgramResult, choice: Choice, *, gaps: bool = False) -> list[bytes]:
    """The frames that came back, in order; nothing at all if some are missing, unless allowed.

    Where each frame was asked for by itself a missing one is an empty picture. From one pass
    nobody could tell which one it is.
    """
    found = [result.files.get(f"{number}.{FORM}", b"") for number in range(len(choice.places))]
    return found if gaps or (all(found) and len(result.files) == len(found)) else []


def _fit(longest_side: int) -> str:
    inside = f"scale='min(iw,{longest_side})':'min(ih,{longest_side})'"
    return f"{inside}:force_original_aspect_ratio=decrease"


MOST_BYTES = 512 * MIB
MOST_FRAMES = 32
LONGEST_SIDE = 1568
SHOWN_ERROR = 300
INPUT = "media"  # without an ending, so that the content alone decides
SOURCE = f"../inputs/{INPUT}"

# Containers that hold their content themselves; playlists would name other files.
FORMATS = (
    "aac,aiff,amr,asf,au,avi,caf,flac,flv,gif,m4v,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpeg,"
    "mpegts,ogg,w64,wav,h264,hevc,ivf,obu"
)
SAFE = ["-protocol_whitelist", "file", "-format_whitelist", FORMATS]
FROM_SOURCE = [*SAFE, "-i", SOURCE]
LIMITS = JailLimits(
    wall_seconds=28.0,
    cpu_seconds=56,
    memory_bytes=4096 * MIB,
    file_bytes=256 * MIB,
    disk_bytes=256 * MIB,
    processes=256,
    output_bytes=32 * MIB,
)
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}  # else each thread reserves address space of its own
MediaSource = bytes | Path


@dataclass(frozen=True, slots=True)
class FilmFrame:
    """A frame of a film: its number, counted from 0, and its time after the first frame."""

    number: int
    seconds: float
    jpeg: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class VideoContent:
    """A film and some of its frames; `missing` are times whose frame could not be decoded."""

    info: MediaInfo
    frame_count: int
    frames: tuple[FilmFrame, ...]
    missing: tuple[float, ...]


async def probe_media(source: MediaSource, jail: Jail) -> MediaInfo:
    """Length and streams of a sound or film; ToolError if it is neither."""
    return (await _probe(source, jail)).info


async def read_video(
    source: MediaSource, jail: Jail, *, frames: int = 8, longest_side: int = LONGEST_SIDE
) -> VideoContent:
    """Read a film: frames at even times, the first and the last included, scaled into a bound."""
    probed = await _probe(source, jail)
    if probed.info.video is None:
        raise ToolError("The file has no pictures, only sound.")
    stream = probed.info.video
    times = await _frame_times(source, jail)
    choice = Choice(times, even_choice(times, min(frames, MOST_FRAMES)), probed.start)
    pictures: list[bytes] = []
    if choice.is_dense(pixels=stream.width * stream.height):
        result = await run(one_pass(choice, FROM_SOURCE, longest_side), source, jail)
        pictures = pictures_of(result, choice)
    if choice.places and len(pictures) < len(choice.places):
        result = await run(one_seek_each(choice, FROM_SOURCE, longest_side), source, jail)
        pictures = pictures_of(result, choice, gaps=True)
        if not any(pictures):
            raise ToolError(f"No frame can be decoded: {_words(result)}")
    pairs = list(zip(choice.places, pictures, strict=True))
    return VideoContent(
        info=probed.info,
        frame_count=len(times),
        frames=tuple(FilmFrame(at, choice.seconds(at), jpeg) for at, jpeg in pairs if jpeg),
        missing=tuple(choice.seconds(at) for at, jpeg in pairs if not jpeg),
    )


async def _probe(source: MediaSource, jail: Jail) -> Probed:
    entries = (
        "format=format_name,duration,start_time:stream=codec_type,codec_name,width,height,"
        "avg_frame_rate,duration,sample_rate,channels:stream_disposition=attached_pic:format_tags:"
        "stream_tags:chapter_tags"
    )
    argv = ["ffprobe", "-v", "error", *SAFE, "-show_entries", entries, "-of", "json", SOURCE]
    result = await run(argv, source, jail)
    if not result.succeeded:
        raise ToolError(f"The file is not a sound or film that can be read: {_words(result)}")
    return parse_probe(result.stdout)


async def read_subtitles(source: MediaSource, jail: Jail, number: int) -> str:
    """One of the streams of text of a film, counted from 0; ToolError if it is no text."""
    argv = ["ffmpeg", "-v", "error", *FROM_SOURCE, "-map", f"0:s:{number}", "-f", "srt", "-"]
    result = await run(argv, source, jail)
    if not result.succeeded:
        raise ToolError(f"The subtitles are no text: {_words(result)}")
    return result.stdout.decode("utf-8", "replace")


async def _frame_times(source: MediaSource, jail: Jail) -> tuple[float, ...]:
    """When each frame is shown, from the container alone: nothing is decoded for it."""
    argv = ["ffprobe", "-v", "error", *SAFE, "-select_streams", "V:0"]
    argv += ["-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", SOURCE]
    return parse_times((await run(argv, source, jail)).stdout)


async def run(argv: Sequence[str], source: MediaSource, jail: Jail) -> ProgramResult:
    """Run ffmpeg or ffprobe on a file, which they find as `SOURCE`."""
    require(missing_ffmpeg())
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if size == 0:
        raise ToolError("The file is empty.")
    if size > MOST_BYTES:
        raise ToolError(f"The file has {size} bytes; at most {MOST_BYTES} are read.")
    return await jail.run_program(
        argv, inputs={INPUT: source}, limits=LIMITS, environment=ENVIRONMENT
    )


def _words(result: ProgramResult) -> str:
    """The last lines of what a program said, without the places of our files."""
    words = result.stderr.decode("utf-8", "replace").replace(SOURCE, "the file").strip()
    return words[-SHOWN_ERROR:] or "no reason given"


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
