"""AudioClipTool and VideoClip: a part of a recording or of a video."""

from pydantic import Field

from gta_bench.confine.limits import JailKind
from gta_bench.confine.workspace import OutputFile, Workspace
from gta_bench.records.tools import Parameter, ParameterType
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part, text
from gta_bench.tools.media import ffmpeg, video
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import decode, encode, find_format, read_span, shortfall
from gta_bench.tools.operation.shared import ClipName, EndTime, StartTime


class AudioClipInput(ToolInput):
    """A recording and two times."""

    audio: str = Field(description="Path to the input audio file.")
    start_time: StartTime = None
    end_time: EndTime = None
    filename: ClipName = None
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class AudioClipTool(Tool[AudioClipInput]):
    """Cuts at the sample, in the format of the recording. Only the clip is kept in memory."""

    name = "AudioClipTool"
    category = "operation"
    description = (
        "This tool extracts a clip from an audio file between specified start and end times."
    )
    version = "1"
    input_type = AudioClipInput
    outputs = (Parameter(type="audio", description="The clip, in the format of the input."),)

    def check(self) -> Availability:
        return ffmpeg.missing(self.equipment) or Available(ffmpeg.program().backend)

    async def apply(self, workspace: Workspace, given: AudioClipInput) -> Made:
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.audio)
        # The length in a header can be a guess, so only decoding shows where the recording ends.
        span = read_span(given.start_time, given.end_time, seconds=None, path=source.path)
        samples = await decode(jail, source, span=span)
        form = find_format(source.media)
        data = await encode(jail, samples, form)
        name = given.filename or f"{source.stem}_clip"
        output = workspace.write(name, data, suffix=form.suffix)
        return _report("audio", output, shortfall(span, samples.seconds), jail.kind)


class VideoClipInput(ToolInput):
    """A video and two times."""

    video: str = Field(description="Path to the input video file.")
    start_time: StartTime = None
    end_time: EndTime = None
    filename: ClipName = None
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class VideoClip(Tool[VideoClipInput]):
    """Encodes the clip again, to cut at the exact frame and not at the next key frame."""

    name = "VideoClip"
    category = "operation"
    description = "This tool extracts a clip from a video between specified start and end times."
    version = "1"
    input_type = VideoClipInput
    outputs = (Parameter(type="video", description="The clip as MP4, with sound."),)

    def check(self) -> Availability:
        lacking = ffmpeg.missing(self.equipment, *video.NEEDS)
        return lacking or Available(ffmpeg.program().backend)

    async def apply(self, workspace: Workspace, given: VideoClipInput) -> Made:
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.video)
        source.need_picture()
        seconds = source.media.seconds
        span = read_span(given.start_time, given.end_time, seconds=seconds, path=source.path)
        data = await video.render(
            jail,
            source,
            problem=f"`{source.path}` cannot be cut",
            before=["-ss", f"{span.start:.6f}"],
            after=[] if span.end is None else ["-t", f"{span.end - span.start:.6f}"],
        )
        name = given.filename or f"{source.stem}_clip"
        output, got = await video.keep(jail, workspace, name, data)
        return _report("video", output, shortfall(span, got), jail.kind)


def _report(kind: ParameterType, output: OutputFile, note: str | None, jail: JailKind) -> Made:
    parts = (file_part(kind, output), *([] if note is None else [text(note)]))
    return Made(parts, backend=ffmpeg.program().backend, jail=jail)
