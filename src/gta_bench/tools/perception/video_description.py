"""VideoDescription: captions of frames at even times, by a vision endpoint."""

from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.client import Client, EncodedImage, find_endpoint
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.frame_tool import Engine, FrameTool
from gta_bench.tools.media.frames import Sample
from gta_bench.tools.media.times import report

PROMPT = "Describe this frame of a video in one or two sentences."

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
        endpoint = find_endpoint(self.equipment, self.name)
        if isinstance(endpoint, Unavailable):
            return endpoint
        client = Client(endpoint)

        async def look(png: bytes) -> str:
            return (await client.chat(PROMPT, [EncodedImage(png, "image/png")])).text

        return Captioner(endpoint.label(), look)

    async def words(self, engine: Captioner, sampled: Sample) -> str:
        return await caption_frames(engine, sampled)


async def caption_frames(captioner: Captioner, sampled: Sample) -> str:
    """What the frames show, one line a frame."""
    lines = [(frame.number, await captioner.look(frame.png)) for frame in sampled.frames]
    return report(sampled, lines)
