"""Sound and film: length, streams, frames at even times, the sound track."""

import asyncio
import io
import wave
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gta_bench.confine.jail import Jail
from gta_bench.confine.limits import MIB, JailLimits, ProgramResult
from gta_bench.content.ffprobe import MediaInfo, Probed, parse_probe, parse_times
from gta_bench.content.needs import missing_ffmpeg, require
from gta_bench.errors import ToolError

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
MOST_SOUND_SECONDS = 3600.0
SAMPLE_RATE = 16_000
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

    def as_text(self) -> str:
        """What is known of the film without looking at it."""
        return f"{self.info.as_text()}\n{self.frame_count} frames"


@dataclass(frozen=True, slots=True)
class AudioContent:
    """A sound file."""

    info: MediaInfo

    def as_text(self) -> str:
        """What is known of the sound without listening to it."""
        return self.info.as_text()


class SoundTrack(NamedTuple):
    """Sound as WAV: 16 kHz, one channel, 16 bits; `cut` where the track goes on."""

    wav: bytes
    seconds: float
    cut: bool


async def probe_media(source: MediaSource, jail: Jail) -> MediaInfo:
    """Length and streams of a sound or film; ToolError if it is neither."""
    return (await _probe(source, jail)).info


async def read_media(source: MediaSource, jail: Jail) -> AudioContent | VideoContent:
    """A sound or a film, by what is in it: a film without pictures is a sound."""
    info = await probe_media(source, jail)
    return AudioContent(info) if info.video is None else await read_video(source, jail)


async def read_audio(source: MediaSource, jail: Jail) -> AudioContent:
    """Read a sound file, or the sound of a film; ToolError if there is none."""
    info = await probe_media(source, jail)
    if info.audio is None:
        raise ToolError("The file has no sound.")
    return AudioContent(info)


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


async def sound_track(
    source: MediaSource, jail: Jail, *, most_seconds: float = MOST_SOUND_SECONDS
) -> SoundTrack:
    """The first sound track, mixed to one channel at 16 kHz; ToolError if there is none."""
    most = min(most_seconds, MOST_SOUND_SECONDS)
    info = (await read_audio(source, jail)).info
    argv = ["ffmpeg", "-v", "error", "-nostdin", *SAFE, "-i", SOURCE, "-map", "0:a:0", "-vn"]
    argv += ["-ac", "1", "-ar", str(SAMPLE_RATE), "-c:a", "pcm_s16le", "-t", f"{most:.3f}"]
    result = await run([*argv, "-bitexact", "-f", "wav", "sound.wav"], source, jail)
    wav = result.files.get("sound.wav", b"")
    seconds = await asyncio.to_thread(_wav_seconds, wav)
    if not seconds:
        raise ToolError(f"The sound cannot be decoded: {_words(result)}")
    return SoundTrack(wav, seconds, cut=info.seconds is None or info.seconds > most + 0.5)


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


def _wav_seconds(wav: bytes) -> float:
    try:
        with wave.open(io.BytesIO(wav)) as sound:
            seconds: float = sound.getnframes() / sound.getframerate()
            return seconds
    except (wave.Error, EOFError):
        return 0.0
