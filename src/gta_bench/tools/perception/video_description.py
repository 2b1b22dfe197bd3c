"""VideoDescription: captions of frames at even times, by a vision endpoint."""

from gta_bench.records.tools import Parameter
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media import endpoints
from gta_bench.tools.media.frame_lines import report
from gta_bench.tools.media.frame_tool import Engine, FrameTool
from gta_bench.tools.media.frames import Sample

PROMPT = "Describe this frame of a video in one or two sentences."
NO_ENDPOINT = Unavailable(
    "No vision endpoint is configured.",
    "Set `endpoint` in [tools.VideoDescription] of gta.toml to one of [endpoints].",
)

# A sentence or two.
Captioner = Engine[str]


class VideoDescription(FrameTool[str]):
    """Asks for each sampled frame, one after the other."""

    name = "VideoDescription"
    category = "perception"
    description = "This tool generates video descriptions by captioning key frames."
    version = "1"
    outputs = (
        Parameter(type="text", description="Generated video description by captioning key frames."),
    )
    longest_side = 1024

    def engine(self) -> Captioner | Unavailable:
        """The vision endpoint of the settings."""
        endpoint = endpoints.configured(self.equipment, self.name)
        if endpoint is None or isinstance(endpoint, Unavailable):
            return endpoint or NO_ENDPOINT
        return Captioner(endpoint.backend, lambda png: endpoints.describe(endpoint, png, PROMPT))

    async def words(self, engine: Captioner, sampled: Sample) -> str:
        return await caption_frames(engine, sampled)


async def caption_frames(captioner: Captioner, sampled: Sample) -> str:
    """What the frames show, one line a frame."""
    lines = [(frame.number, await captioner.look(frame.png)) for frame in sampled.frames]
    return report(sampled, lines)
