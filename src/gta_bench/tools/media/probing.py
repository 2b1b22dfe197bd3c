"""Properties of an audio or video file: container, length, sound and picture."""

from math import isfinite
from pathlib import PurePosixPath
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.media import ffmpeg

MOST_PIXELS = 8192 * 4320
MOST_CHANNELS = 8
RATES = range(1000, 400_000)
ENTRIES = (
    "format=format_name,duration,start_time"
    ":stream=index,codec_type,codec_name,sample_rate,channels,bit_rate,width,height,"
    "avg_frame_rate,duration"
    ":stream_disposition=attached_pic:stream_side_data=rotation"
)


class Sound(NamedTuple):
    """The first sound track."""

    codec: str
    rate: int
    channels: int
    bit_rate: int | None


class MovingPicture(NamedTuple):
    """The first video track as it is shown; cover art does not count."""

    codec: str
    width: int
    height: int
    rate: float | None


class Media(NamedTuple):
    """What ffprobe found; `container` is the first name of a format that has several."""

    container: str
    seconds: float | None
    start: float
    sound: Sound | None
    picture: MovingPicture | None


class ProbedFile(NamedTuple):
    """A file of the workspace with its properties; `path` is its portable name."""

    path: str
    data: bytes
    media: Media

    @property
    def stem(self) -> str:
        """Return the base name for files that are made from it."""
        return PurePosixPath(self.path).stem

    def need_sound(self) -> Sound:
        """Return the sound track; raises ToolError if there is none or it is too large."""
        sound = self.media.sound
        if sound is None:
            raise ToolError(f"`{self.path}` has no sound.")
        if not 1 <= sound.channels <= MOST_CHANNELS or sound.rate not in RATES:
            about = f"{sound.channels} channels at {sound.rate} Hz"
            raise ToolError(f"`{self.path}` has {about}; the limit is {MOST_CHANNELS} channels.")
        return sound

    def need_picture(self) -> MovingPicture:
        """Return the video track; raises ToolError if there is none or it is too large."""
        picture = self.media.picture
        if picture is None:
            raise ToolError(f"`{self.path}` has no video track.")
        if picture.width < 1 or picture.height < 1:
            raise ToolError(f"`{self.path}` has a video track without a size.")
        if picture.width * picture.height > MOST_PIXELS:
            size = f"{picture.width}x{picture.height}"
            raise ToolError(f"`{self.path}` has {size} pixels; the limit is 8192x4320.")
        return picture


class _Foreign(BaseModel):
    """Output of ffprobe; everything may be missing."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Disposition(_Foreign):
    attached_pic: int = 0


class _SideData(_Foreign):
    rotation: float = 0.0


class _Stream(_Foreign):
    codec_type: str = ""
    codec_name: str = "unknown"
    sample_rate: str = "0"
    channels: int = 0
    bit_rate: str | None = None
    width: int = 0
    height: int = 0
    avg_frame_rate: str = "0/0"
    duration: str | None = None
    disposition: _Disposition = _Disposition()
    side_data_list: tuple[_SideData, ...] = ()


class _Format(_Foreign):
    format_name: str = ""
    duration: str | None = None
    start_time: str | None = None


class _Probed(_Foreign):
    streams: tuple[_Stream, ...] = ()
    format: _Format = _Format()


async def open_media(jail: Jail, workspace: Workspace, spelling: str) -> ProbedFile:
    """Read a file that an agent named, and its properties."""
    path = workspace.resolve(spelling)
    data = workspace.read(path)
    return ProbedFile(path, data, await probe(jail, data, path=path))


async def probe(jail: Jail, data: bytes, *, path: str) -> Media:
    """Return the properties of a file; raises ToolError if it is neither audio nor video."""
    if not data:
        raise ToolError(f"`{path}` is empty.")
    arguments = ["-show_entries", ENTRIES, "-of", "json"]
    printed = await ffmpeg.look(jail, data, arguments, path=path)
    try:
        probed = _Probed.model_validate_json(printed)
    except ValidationError as exc:
        raise ToolError(f"`{path}` has an invalid header.") from exc
    media = _media(probed)
    if media.sound is None and media.picture is None:
        raise ToolError(f"`{path}` has neither sound nor video.")
    return media


def _media(probed: _Probed) -> Media:
    sound = next((stream for stream in probed.streams if stream.codec_type == "audio"), None)
    moving = (
        stream
        for stream in probed.streams
        if stream.codec_type == "video" and not stream.disposition.attached_pic
    )
    picture = next(moving, None)
    longest = [probed.format.duration, *(stream.duration for stream in probed.streams)]
    return Media(
        container=probed.format.format_name.split(",")[0],
        seconds=next((found for text in longest if (found := _number(text)) is not None), None),
        start=_number(probed.format.start_time) or 0.0,
        sound=None if sound is None else _sound(sound),
        picture=None if picture is None else _picture(picture),
    )


def _sound(stream: _Stream) -> Sound:
    rate, bit_rate = _number(stream.sample_rate) or 0.0, _number(stream.bit_rate)
    return Sound(
        stream.codec_name, int(rate), stream.channels, None if bit_rate is None else int(bit_rate)
    )


def _picture(stream: _Stream) -> MovingPicture:
    over, _, under = stream.avg_frame_rate.partition("/")
    frames, seconds = _number(over) or 0.0, _number(under or "1") or 0.0
    rate = frames / seconds if frames > 0 and seconds > 0 else None
    width, height = stream.width, stream.height
    if any(round(data.rotation) % 180 == 90 for data in stream.side_data_list):
        width, height = height, width  # a phone in portrait position
    return MovingPicture(stream.codec_name, width, height, rate)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) else None
