"""AudioClipTool: a stretch of a recording, in the recording's own format."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Availability, Available, Made, Tool, ToolInput, file_part, text
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import open_media
from gta_bench.tools.media.sound import decode, encode, kept_format, read_span, shortfall
from gta_bench.tools.operation.fields import ClipName


class AudioClipInput(ToolInput):
    """A file and two times."""

    audio: str = Field(description="Path to the input audio file.")
    start_time: float | None = Field(None, description="Start time of the clip in seconds.")
    end_time: float | None = Field(
        None, description="End time of the clip in seconds (must be > start_time)."
    )
    filename: ClipName = None
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class AudioClipTool(Tool[AudioClipInput]):
    """Cuts at the sample; only the clip itself is ever held in memory."""

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
        # The length that a header tells can be a guess, so only decoding decides where it ends.
        span = read_span(given.start_time, given.end_time, seconds=None, path=source.path)
        samples = await decode(jail, source, span=span)
        form = kept_format(source.media)
        made = await encode(jail, samples, form)
        name = given.filename or f"{source.stem}_clip"
        output = workspace.write(name, made, suffix=form.suffix)
        note = shortfall(span, samples.seconds)
        parts = (file_part("audio", output), *([] if note is None else [text(note)]))
        return Made(parts, backend=ffmpeg.program().backend, jail=jail.kind)
