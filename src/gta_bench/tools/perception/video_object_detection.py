"""VideoObjectDetection: the things in a video, found in frames at even times."""

from collections.abc import Sequence
from typing import NamedTuple

from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.detection import SURE
from gta_bench.tools.backends.labels import CLASSES
from gta_bench.tools.backends.local import check_objects, find_objects
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.frame_tool import Engine, FrameTool
from gta_bench.tools.media.frames import Sample
from gta_bench.tools.media.times import report

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


# The surest thing first.
Detector = Engine[Sequence[Found]]


class VideoObjectDetection(FrameTool[Sequence[Found]]):
    """Looks for things in each sampled frame."""

    name = "VideoObjectDetection"
    category = "perception"
    description = "This tool detects objects in video frames using a YOLO model."
    version = "1"
    outputs = (
        Parameter(
            type="text", description="Object detection results for each processed video frame."
        ),
    )

    def engine(self) -> Detector | Unavailable:
        """The detector of the picture tools."""
        state = check_objects(self.equipment)
        return state if isinstance(state, Unavailable) else Detector(state.backend, self._detect)

    async def words(self, engine: Detector, sampled: Sample) -> str:
        return await detect_in_frames(engine, sampled)

    async def _detect(self, png: bytes) -> Sequence[Found]:
        found = await find_objects(self.equipment, png, "the frame", floor=SURE)
        return [
            Found((*one.box,), one.score, one.label, CLASSES.index(one.label))
            for one in found
            if one.label in CLASSES  # the detector's list has names that it was never trained on
        ]


async def detect_in_frames(detector: Detector, sampled: Sample) -> str:
    """What is in the frames, one line a frame."""
    lines = []
    for frame in sampled.frames:
        things = await detector.look(frame.png)
        lines.append((frame.number, " | ".join(map(str, things)) or NOTHING))
    return report(sampled, lines)
