"""Audio and video: length, streams, frames at even times, loudness and silence."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Final, NamedTuple

from pydantic import BaseModel, ValidationError

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, ProgramResult
from gta_bench.content.needs import missing_ffmpeg, require
from gta_bench.errors import ToolError

# Tags that programs write, not people.
PROGRAM_TAGS = frozenset({
    "encoder", "major_brand", "minor_version", "compatible_brands", "handler_name", "vendor_id",
    "language", "duration", "creation_time", "bps", "number_of_frames", "number_of_bytes",
    "mimetype", "filename",
})  # fmt: skip
# Up to these limits, decoding a whole video once is cheaper than seeking, or at least bounded.
FRAMES_A_SEEK = 100  # a seek decodes some of them, from the last key frame on
PIXELS_IN_ALL = 1_500_000_000
QUALITY = ["-q:v", "3", "-pix_fmt", "yuvj420p"]
QUIET = ["ffmpeg", "-v", "error", "-nostdin"]
MOST_BYTES = 512 * MIB
MOST_FRAMES = 32
LONGEST_SIDE = 1568
SHOWN_ERROR = 300
INPUT = "media"  # without a suffix, so that only the content decides
SOURCE = f"../inputs/{INPUT}"
# Containers that include their content; playlists would name other files.
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
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}  # otherwise each thread reserves address space
MOST_SECONDS: Final = 1800.0
SILENCE: Final = -50.0  # dBFS
SHORTEST_SILENCE: Final = 0.5  # seconds
LOWEST_LEVEL, LOWEST_LOUDNESS = -90.0, -70.0  # what ffmpeg reports for silence
WAVEFORM: Final = "waveform.png"
SIZE: Final = "1200x300"
MEAN: Final = re.compile(r"mean_volume: (-?[\d.]+|-inf) dB")
PEAK: Final = re.compile(r"max_volume: (-?[\d.]+|-inf) dB")
LOUDNESS: Final = re.compile(r"Integrated loudness:\s+I:\s+(-?[\d.]+|-?inf|nan) LUFS")
SILENT: Final = re.compile(r"silence_duration: ([\d.]+)")
SILENCE_START: Final = re.compile(r"silence_start: (-?[\d.]+)")


@dataclass(frozen=True, slots=True)
class VideoStream:
    """A video stream; the rate is in frames per second, None if the file does not state it."""

    codec: str
    width: int
    height: int
    rate: float | None


@dataclass(frozen=True, slots=True)
class AudioStream:
    """An audio stream."""

    codec: str
    sample_rate: int
    channels: int


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """The container of a file, its length, and its first video and audio stream.

    `container` is ffprobe's name of the actual format. `seconds` is None if the file does not
    state it. `tags` is its metadata, including titles of chapters; `subtitles` counts its
    subtitle streams; `others` lists what is ignored; `start` is when its clock begins.
    """

    container: str
    seconds: float | None
    video: VideoStream | None
    audio: AudioStream | None
    tags: tuple[tuple[str, str], ...] = ()
    subtitles: int = 0
    others: tuple[str, ...] = ()
    start: float = 0.0


class _Tagged(BaseModel):
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
    disposition: dict[str, int] = {}

    @property
    def is_cover(self) -> bool:
        return bool(self.disposition.get("attached_pic"))


class _Format(_Tagged):
    format_name: str = "unknown"
    duration: str | None = None
    start_time: str | None = None


class _Probe(BaseModel):
    format: _Format = _Format()
    streams: tuple[_Stream, ...] = ()
    chapters: tuple[_Tagged, ...] = ()


def parse_probe(reply: bytes) -> MediaInfo:
    """Parse the JSON of ffprobe. Raises ToolError if the file has neither video nor audio."""
    try:
        probe = _Probe.model_validate_json(reply)
    except ValidationError as exc:
        raise ToolError("ffprobe returned a reply that cannot be read.") from exc
    videos = [s for s in probe.streams if s.codec_type == "video" and not s.is_cover]
    sounds = [s for s in probe.streams if s.codec_type == "audio"]
    if not videos and not sounds:
        raise ToolError("The file contains neither video nor audio.")
    first = next(iter(sounds), None)
    rate = int(_parse_seconds(first.sample_rate) or 0) if first else 0
    lengths = [
        _parse_seconds(probe.format.duration),
        *(_parse_seconds(s.duration) for s in probe.streams),
    ]
    return MediaInfo(
        container=probe.format.format_name,
        seconds=next((length for length in lengths if length is not None), None),
        video=_read_video_stream(videos[0]) if videos else None,
        audio=AudioStream(first.codec_name, rate, first.channels) if first else None,
        tags=tuple(_read_tags(probe)),
        subtitles=sum(s.codec_type == "subtitle" for s in probe.streams),
        others=tuple(_list_others(probe.streams, len(videos), len(sounds))),
        start=_parse_seconds(probe.format.start_time) or 0.0,
    )


def _read_tags(probe: _Probe) -> Iterator[tuple[str, str]]:
    """Yield titles, names and comments, without tags that programs write."""
    for tagged in (probe.format, *probe.streams, *probe.chapters):
        for name, value in tagged.tags.items():
            if name.lower() not in PROGRAM_TAGS and not name.startswith("_") and value.strip():
                yield name, " ".join(value.split())


def _list_others(streams: Sequence[_Stream], videos: int, sounds: int) -> Iterator[str]:
    if any(stream.is_cover for stream in streams):
        yield "its cover picture"
    if videos > 1:
        yield f"all but the first of its {videos} film tracks"
    if sounds > 1:
        yield f"all but the first of its {sounds} sound tracks"
    strange = sum(stream.codec_type in ("attachment", "data") for stream in streams)
    if strange:
        yield f"{strange} attached files or data tracks"


def parse_times(lines: bytes) -> tuple[float, ...]:
    """Return the times of packets in display order, without those marked to be dropped."""
    times = []
    for line in lines.decode("ascii", "replace").splitlines():
        time, _, flags = line.partition(",")
        seconds = _parse_seconds(time)
        if seconds is not None and "D" not in flags:
            times.append(seconds)
    return tuple(sorted(set(times)))


def _read_video_stream(stream: _Stream) -> VideoStream:
    try:
        rate = float(Fraction(stream.avg_frame_rate))
    except (ValueError, ZeroDivisionError):
        rate = None
    return VideoStream(stream.codec_name, stream.width, stream.height, rate or None)


def _parse_seconds(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and isfinite(number) else None


class Choice(NamedTuple):
    """Frames to extract: the times of all frames, the chosen ones, and when the clock begins."""

    times: Sequence[float]
    chosen: Sequence[int]
    start: float

    def seconds(self, frame: int) -> float:
        """The time of a frame after the first one."""
        return self.times[frame] - self.times[0]

    def before(self, frame: int) -> float:
        """A time between a frame and the previous one, on ffmpeg's clock."""
        times = self.times
        return (times[frame - 1] + times[frame]) / 2 - self.start if frame else -1.0

    def after(self, frame: int) -> float:
        """A time between a frame and the next one, on ffmpeg's clock."""
        last = frame + 1 == len(self.times)
        return self.times[frame] - self.start + 1.0 if last else self.before(frame + 1)

    def is_dense(self, *, pixels: int) -> bool:
        """Whether to decode the whole video instead of seeking to each frame."""
        count = len(self.times)
        return 0 < count <= FRAMES_A_SEEK * len(self.chosen) and count * pixels <= PIXELS_IN_ALL


def choose_evenly(times: Sequence[float], wanted: int) -> list[int]:
    """Choose indexes of a sorted list at even times, including the first and the last."""
    if wanted < 1 or not times:
        return []
    if wanted == 1 or len(times) == 1:
        return [0]
    start, step = times[0], (times[-1] - times[0]) / (wanted - 1)
    nearest = (_find_nearest(times, start + step * number) for number in range(wanted))
    return list(dict.fromkeys(nearest))


def _find_nearest(times: Sequence[float], wanted: float) -> int:
    after = min(bisect_left(times, wanted), len(times) - 1)
    before = max(after - 1, 0)
    return before if wanted - times[before] <= times[after] - wanted else after


def _decode_once(choice: Choice, scale: str) -> list[str]:
    """Return a command that decodes the video once and selects the frames by time windows."""
    windows = [f"between(t,{choice.before(at):.6f},{choice.after(at):.6f})" for at in choice.chosen]
    chain = f"select='{'+'.join(windows)}',{scale}"
    argv = [*QUIET, *FROM_SOURCE, "-map", "0:V:0", "-vf", chain, "-fps_mode", "passthrough"]
    return [*argv, *QUALITY, "-start_number", "0", "%d.jpg"]


def _seek_each(choice: Choice, scale: str) -> list[str]:
    """Return a command that opens the file for each frame and seeks to it."""
    argv = list(QUIET)
    for at in choice.chosen:
        seek = ["-ss", f"{choice.before(at):.6f}"] if choice.before(at) > 0 else []
        argv += ["-threads", "1", *seek, *FROM_SOURCE]
    for number in range(len(choice.chosen)):
        argv += ["-map", f"{number}:V:0", "-frames:v", "1", "-vf", scale, *QUALITY]
        argv += ["-update", "1", "-threads", "1", f"{number}.jpg"]
    return argv


@dataclass(frozen=True, slots=True)
class FilmFrame:
    """A frame of a video: its number, counted from 0, and its time after the first frame."""

    number: int
    seconds: float
    jpeg: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class VideoContent:
    """A video and some of its frames; `missing` are times of frames that cannot be decoded."""

    info: MediaInfo
    frame_count: int
    frames: tuple[FilmFrame, ...]
    missing: tuple[float, ...]


async def read_video(
    data: bytes, jail: Jail, *, frames: int = 8, longest_side: int = LONGEST_SIDE
) -> VideoContent:
    """Read a video: frames at even times, including the first and the last, scaled to fit."""
    info = await probe_media(data, jail)
    if info.video is None:
        raise ToolError("The file has no video, only audio.")
    times = await _read_frame_times(data, jail)
    choice = Choice(times, choose_evenly(times, min(frames, MOST_FRAMES)), info.start)
    scale = _fit(longest_side)
    files: Mapping[str, bytes] = {}
    if choice.is_dense(pixels=info.video.width * info.video.height):
        files = (await _run_ffmpeg(_decode_once(choice, scale), data, jail)).files
    # If frames are missing after decoding once, nothing says which ones.
    if len(files) != len(choice.chosen) or not all(files.values()):
        result = await _run_ffmpeg(_seek_each(choice, scale), data, jail)
        files = result.files
        if not any(files.values()):
            raise ToolError(f"No frame can be decoded: {_explain(result)}")
    pairs = [(at, files.get(f"{number}.jpg", b"")) for number, at in enumerate(choice.chosen)]
    return VideoContent(
        info=info,
        frame_count=len(times),
        frames=tuple(FilmFrame(at, choice.seconds(at), jpeg) for at, jpeg in pairs if jpeg),
        missing=tuple(choice.seconds(at) for at, jpeg in pairs if not jpeg),
    )


async def read_frame(
    data: bytes, jail: Jail, seconds: float, *, longest_side: int = LONGEST_SIDE, least: int = 0
) -> bytes:
    """Return the frame of a video that is shown at a time, as JPEG and scaled to fit.

    The longer side of a small frame is enlarged to `least` pixels.
    """
    argv = [*QUIET, "-ss", f"{seconds:.3f}", *FROM_SOURCE, "-map", "0:V:0", "-frames:v", "1"]
    argv += ["-vf", _fit(longest_side, least), *QUALITY, "-update", "1", "frame.jpg"]
    result = await _run_ffmpeg(argv, data, jail)
    if not result.files.get("frame.jpg"):
        raise ToolError(f"no frame can be decoded at second {seconds:g}")
    return result.files["frame.jpg"]


def _fit(longest_side: int, least: int = 0) -> str:
    fit = ":".join(f"'min(max({side},{least}),{longest_side})'" for side in ("iw", "ih"))
    return f"scale={fit}:force_original_aspect_ratio=decrease"


async def probe_media(data: bytes, jail: Jail) -> MediaInfo:
    """Read the length and streams. Raises ToolError if the file is neither audio nor video."""
    entries = (
        "format=format_name,duration,start_time:stream=codec_type,codec_name,width,height,"
        "avg_frame_rate,duration,sample_rate,channels:stream_disposition=attached_pic:format_tags:"
        "stream_tags:chapter_tags"
    )
    argv = ["ffprobe", "-v", "error", *SAFE, "-show_entries", entries, "-of", "json", SOURCE]
    result = await _run_ffmpeg(argv, data, jail)
    if not result.succeeded:
        raise ToolError(f"The file is not audio or video that can be read: {_explain(result)}")
    return parse_probe(result.stdout)


async def read_subtitles(data: bytes, jail: Jail, number: int) -> str:
    """Read a subtitle stream, counted from 0. Raises ToolError if it is not text."""
    argv = ["ffmpeg", "-v", "error", *FROM_SOURCE, "-map", f"0:s:{number}", "-f", "srt", "-"]
    result = await _run_ffmpeg(argv, data, jail)
    if not result.succeeded:
        raise ToolError(f"The subtitles are not text: {_explain(result)}")
    return result.stdout.decode("utf-8", "replace")


async def _read_frame_times(data: bytes, jail: Jail) -> tuple[float, ...]:
    """Return the time of each frame, from the container alone and without decoding."""
    argv = ["ffprobe", "-v", "error", *SAFE, "-select_streams", "V:0"]
    argv += ["-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", SOURCE]
    return parse_times((await _run_ffmpeg(argv, data, jail)).stdout)


async def _run_ffmpeg(argv: Sequence[str], data: bytes, jail: Jail) -> ProgramResult:
    """Run ffmpeg or ffprobe on a file, which they find as `SOURCE`."""
    require(missing_ffmpeg())
    if not data:
        raise ToolError("The file is empty.")
    if len(data) > MOST_BYTES:
        raise ToolError(f"The file has {len(data)} bytes; at most {MOST_BYTES} are read.")
    return await jail.run_program(
        argv, inputs={INPUT: data}, limits=LIMITS, environment=ENVIRONMENT
    )


def _explain(result: ProgramResult) -> str:
    """Return the end of a program's error output, without our paths."""
    output = result.stderr.decode("utf-8", "replace").replace(SOURCE, "the file").strip()
    return output[-SHOWN_ERROR:] or "no reason given"


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """Measurements of an audio track; levels are in dBFS, None if all of it is silent.

    `silent` is the share of time below -50 dBFS, in stretches of at least half a second.
    """

    mean_level: float | None
    peak_level: float | None
    loudness: float | None
    silent: float
    waveform: bytes = field(repr=False)


async def measure_sound(data: bytes, jail: Jail, info: MediaInfo) -> SoundFacts:
    """Measure the first half hour of the first audio track.

    Raises ToolError if it cannot be decoded.
    """
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
    result = await _run_ffmpeg(argv, data, jail)
    output = result.stderr.decode("utf-8", "replace")
    if WAVEFORM not in result.files or not MEAN.search(output):
        raise ToolError("The audio cannot be decoded.")
    return SoundFacts(
        mean_level=_read_level(MEAN, output, floor=LOWEST_LEVEL),
        peak_level=_read_level(PEAK, output, floor=LOWEST_LEVEL),
        loudness=_read_level(LOUDNESS, output, floor=LOWEST_LOUDNESS),
        silent=_measure_silence(output, info),
        waveform=result.files[WAVEFORM],
    )


def _read_level(pattern: re.Pattern[str], output: str, *, floor: float) -> float | None:
    """Return the last match, because ffmpeg sets up its filters twice and reports both."""
    found = pattern.findall(output)
    value = float(found[-1]) if found else floor
    return value if value > floor else None


def _measure_silence(output: str, info: MediaInfo) -> float:
    length = min(info.seconds or 0.0, MOST_SECONDS)
    if not length:
        return 0.0
    silent = sum(float(found) for found in SILENT.findall(output))
    starts = SILENCE_START.findall(output)
    if output.rfind("silence_start") > output.rfind(
        "silence_end"
    ):  # silence at the end is not reported
        silent += max(0.0, length - float(starts[-1]))
    return round(min(1.0, silent / length), 3)
