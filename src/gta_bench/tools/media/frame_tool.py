"""What the tools that look at a film share: frames at even times, one engine, bounded words."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.tools.contract import (
    Availability,
    Available,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    text,
)
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.frames import Sample, sample
from gta_bench.tools.media.probing import open_media

Seen = TypeVar("Seen")


class VideoInput(ToolInput):
    """A file."""

    video: str = Field(description="Path to the input video file.")


class Engine(NamedTuple, Generic[Seen]):
    """What looks at one frame: a PNG in, what it sees out."""

    backend: str
    look: Callable[[bytes], Awaitable[Seen]]


class FrameTool(Tool[VideoInput], Generic[Seen]):
    """A tool that looks at sampled frames with an engine, one after the other."""

    input_type = VideoInput
    longest_side: int | None = None

    @abstractmethod
    def engine(self) -> Engine[Seen] | Unavailable:
        """What looks at the frames here."""

    @abstractmethod
    async def words(self, engine: Engine[Seen], sampled: Sample) -> str:
        """What the frames show, one line a frame."""

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or self.engine()
        return Available(found.backend) if isinstance(found, Engine) else found

    async def apply(self, workspace: Workspace, given: VideoInput) -> Made:
        engine = self.engine()
        if isinstance(engine, Unavailable):
            raise ToolUnavailable(engine.reason, mend=engine.mend)
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.video)
        said = await self.words(engine, await sample(jail, source, longest=self.longest_side))
        backend = f"{engine.backend}, {ffmpeg.program().backend}"
        return Made((text(said),), backend=backend, jail=jail.kind)
