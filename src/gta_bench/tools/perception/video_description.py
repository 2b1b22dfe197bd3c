"""VideoDescription: captions of frames at even times, by a vision endpoint."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import (
    Availability,
    Available,
    Equipment,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    text,
)
from gta_bench.tools.media import endpoints, ffmpeg
from gta_bench.tools.media.frame_lines import report
from gta_bench.tools.media.frames import Sample, sample
from gta_bench.tools.media.probing import open_media

PROMPT = "Describe this frame of a video in one or two sentences."
LONGEST_SIDE = 1024
NO_ENDPOINT = Unavailable(
    "No vision endpoint is configured.",
    "Set `endpoint` in [tools.VideoDescription] of gta.toml to one of [endpoints].",
)


class Captioner(NamedTuple):
    """What tells what a picture shows: a PNG in, a sentence or two out."""

    backend: str
    describe: Callable[[bytes], Awaitable[str]]


class VideoDescriptionInput(ToolInput):
    """A file."""

    video: str = Field(description="Path to the input video file.")


class VideoDescription(Tool[VideoDescriptionInput]):
    """Asks for each sampled frame, one after the other."""

    name = "VideoDescription"
    category = "perception"
    description = "This tool generates video descriptions by captioning key frames."
    version = "1"
    input_type = VideoDescriptionInput
    outputs = (
        Parameter(type="text", description="Generated video description by captioning key frames."),
    )

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or captioner(self.equipment)
        return Available(found.backend) if isinstance(found, Captioner) else found

    async def apply(self, workspace: Workspace, given: VideoDescriptionInput) -> Made:
        found = captioner(self.equipment)
        if isinstance(found, Unavailable):
            raise ToolUnavailable(found.reason, mend=found.mend)
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.video)
        words = await caption_frames(found, await sample(jail, source, longest=LONGEST_SIDE))
        backend = f"{found.backend}, {ffmpeg.program().backend}"
        return Made((text(words),), backend=backend, jail=jail.kind)


async def caption_frames(captioner: Captioner, sampled: Sample) -> str:
    """What the frames show, one line a frame."""
    lines = [(frame.number, await captioner.describe(frame.png)) for frame in sampled.frames]
    return report(sampled, lines)


def captioner(equipment: Equipment) -> Captioner | Unavailable:
    """Where the toolbox's vision client plugs in."""
    endpoint = endpoints.configured(equipment, VideoDescription.name)
    if endpoint is None or isinstance(endpoint, Unavailable):
        return endpoint or NO_ENDPOINT
    return Captioner(endpoint.backend, lambda png: endpoints.describe(endpoint, png, PROMPT))
