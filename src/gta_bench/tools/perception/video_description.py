"""VideoDescription: captions of frames at even times, by a vision endpoint."""

from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.client import Client, EncodedImage, find_endpoint
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.frames import Engine, FrameTool

PROMPT = "Describe this frame of a video in one or two sentences."


class VideoDescription(FrameTool):
    """Asks a vision model about each sampled frame."""

    name = "VideoDescription"
    category = "perception"
    description = "This tool generates video descriptions by captioning key frames."
    version = "1"
    outputs = (
        Parameter(type="text", description="Generated video description by captioning key frames."),
    )
    longest_side = 1024

    def engine(self) -> Engine | Unavailable:
        """Return the vision endpoint of gta.toml."""
        endpoint = find_endpoint(self.equipment, self.name)
        if isinstance(endpoint, Unavailable):
            return endpoint
        client = Client(endpoint)

        async def look(png: bytes) -> str:
            return (await client.chat(PROMPT, [EncodedImage(png, "image/png")])).text

        return Engine(endpoint.label(), look)
