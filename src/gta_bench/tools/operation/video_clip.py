"""VideoClip: a stretch of a video, with its sound."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part, text
from gta_bench.tools.media import ffmpeg, video
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import read_span, shortfall
from gta_bench.tools.operation.fields import ClipName


class VideoClipInput(ToolInput):
    """A file and two times."""

    video: str = Field(description="Path to the input video file.")
    start_time: float | None = Field(None, description="Start time of the clip in seconds.")
    end_time: float | None = Field(
        None, description="End time of the clip in seconds (must be > start_time)."
    )
    filename: ClipName = None
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class VideoClip(Tool[VideoClipInput]):
    """Encodes anew, so that the cut is at the frame and not at the next key frame."""

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
        length = [] if span.end is None else ["-t", f"{span.end - span.start:.6f}"]
        made = await video.render(
            jail,
            source,
            problem=f"`{source.path}` cannot be cut",
            before=["-ss", f"{span.start:.6f}"],
            after=length,
        )
        name = given.filename or f"{source.stem}_clip"
        output, got = await video.keep(jail, workspace, name, made)
        note = shortfall(span, got)
        parts = (file_part("video", output), *([] if note is None else [text(note)]))
        return Made(parts, backend=ffmpeg.program().backend, jail=jail.kind)
