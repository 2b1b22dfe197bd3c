"""TextToVideoTool: a video by an endpoint that generates videos, or none at all."""

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.client import Client, find_endpoint
from gta_bench.tools.contract import (
    Availability,
    Available,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    file_part,
    require,
)
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import probe

SUFFIXES = {"mov": ".mp4", "matroska": ".webm"}
LONGEST_PROMPT = 4000


class TextToVideoInput(ToolInput):
    """What the video should show."""

    description: str = Field(
        min_length=1,
        max_length=LONGEST_PROMPT,
        description="A text description of the video content.",
    )
    output_dir: str | None = Field(None, description="Accepted and ignored.")


class TextToVideoTool(Tool[TextToVideoInput]):
    """Asks the endpoint and checks that the reply is a video."""

    name = "TextToVideoTool"
    category = "creativity"
    description = "This tool generates a video based on a text description using a diffusion model."
    version = "1"
    input_type = TextToVideoInput
    outputs = (Parameter(type="video", description="The generated video."),)

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or find_endpoint(self.equipment, self.name)
        return found if isinstance(found, Unavailable) else Available(found.label())

    async def apply(self, workspace: Workspace, given: TextToVideoInput) -> Made:
        endpoint = require(find_endpoint(self.equipment, self.name))
        jail = self.equipment.need_jail()
        made = await Client(endpoint).make_video(given.description)
        media = await probe(jail, made, path="the endpoint's file")
        if media.picture is None or media.container not in SUFFIXES:
            raise ToolError("The endpoint sent a file that is not an MP4 or WebM video.")
        output = workspace.write("video", made, suffix=SUFFIXES[media.container])
        return Made((file_part("video", output),), backend=endpoint.label(), jail=jail.kind)
