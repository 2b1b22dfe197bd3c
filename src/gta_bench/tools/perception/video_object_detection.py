"""VideoObjectDetection: the objects in a video, found in frames at even times."""

from collections.abc import Sequence

from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.detection import CLASSES, SURE
from gta_bench.tools.backends.local import KnownObject, check_objects, find_objects
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.frames import Engine, FrameTool

NOTHING = "(no detections)"


class VideoObjectDetection(FrameTool):
    """Detects objects in each sampled frame."""

    name = "VideoObjectDetection"
    category = "perception"
    description = "This tool detects objects in video frames using a YOLO model."
    version = "1"
    outputs = (
        Parameter(
            type="text", description="Object detection results for each processed video frame."
        ),
    )

    def engine(self) -> Engine | Unavailable:
        """Return the detector of the picture tools."""
        state = check_objects(self.equipment)
        return state if isinstance(state, Unavailable) else Engine(state.backend, self._detect)

    async def _detect(self, png: bytes) -> str:
        return format_objects(await find_objects(self.equipment, png, "the frame", floor=SURE))


def format_objects(found: Sequence[KnownObject]) -> str:
    """Return each object's box, confidence, class and class number in one line."""
    lines = [
        f"{one.box} conf: {one.score:.2f}, class: {one.label} ({CLASSES.index(one.label)})"
        for one in found
        if one.label in CLASSES  # the detector's list has names that it was never trained on
    ]
    return " | ".join(lines) or NOTHING
