"""VideoObjectDetection: the things in a video, found in frames at even times."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.detection import SURE
from gta_bench.tools.backends.labels import CLASSES
from gta_bench.tools.backends.local import check_objects, find_objects
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
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.frame_lines import report
from gta_bench.tools.media.frames import Sample, sample
from gta_bench.tools.media.probing import open_media

NOTHING = "(no detections)"


class Found(NamedTuple):
    """One thing in a picture: corners in pixels, confidence, and its class by name and number."""

    box: tuple[int, int, int, int]
    confidence: float
    label: str
    number: int

    def __str__(self) -> str:
        box = ", ".join(str(corner) for corner in self.box)
        return f"({box}) conf: {self.confidence:.2f}, class: {self.label} ({self.number})"


class Detector(NamedTuple):
    """What finds things in a picture: a PNG in, the surest thing first."""

    backend: str
    detect: Callable[[bytes], Awaitable[Sequence[Found]]]


class VideoObjectDetectionInput(ToolInput):
    """A file."""

    video: str = Field(description="Path to the input video file.")


class VideoObjectDetection(Tool[VideoObjectDetectionInput]):
    """Looks for things in each sampled frame."""

    name = "VideoObjectDetection"
    category = "perception"
    description = "This tool detects objects in video frames using a YOLO model."
    version = "1"
    input_type = VideoObjectDetectionInput
    outputs = (
        Parameter(
            type="text", description="Object detection results for each processed video frame."
        ),
    )

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or detector(self.equipment)
        return Available(found.backend) if isinstance(found, Detector) else found

    async def apply(self, workspace: Workspace, given: VideoObjectDetectionInput) -> Made:
        found = detector(self.equipment)
        if isinstance(found, Unavailable):
            raise ToolUnavailable(found.reason, mend=found.mend)
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.video)
        words = await detect_in_frames(found, await sample(jail, source))
        backend = f"{found.backend}, {ffmpeg.program().backend}"
        return Made((text(words),), backend=backend, jail=jail.kind)


async def detect_in_frames(detector: Detector, sampled: Sample) -> str:
    """What is in the frames, one line a frame."""
    lines = []
    for frame in sampled.frames:
        things = await detector.detect(frame.png)
        lines.append((frame.number, " | ".join(map(str, things)) or NOTHING))
    return report(sampled, lines)


def detector(equipment: Equipment) -> Detector | Unavailable:
    """The detector of the picture tools."""
    state = check_objects(equipment)
    if isinstance(state, Unavailable):
        return state

    async def detect(png: bytes) -> Sequence[Found]:
        found = await find_objects(equipment, png, "the frame", floor=SURE)
        return [
            Found((*one.box,), one.score, one.label, CLASSES.index(one.label))
            for one in found
            if one.label in CLASSES  # the detector's list has names that it was never trained on
        ]

    return Detector(state.backend, detect)
