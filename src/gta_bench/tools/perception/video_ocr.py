"""VideoOCR: the text in a video, read from frames at even times."""

from collections.abc import Sequence

from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.local import check_text, read_text
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.frames import Engine, FrameTool, Sample, report

SAME = "Frames that are not listed show the same text as the frame before, or none."
NOTHING = "No text was found."


class VideoOCR(FrameTool):
    """Reads each sampled frame; frames with the same text as before are left out."""

    name = "VideoOCR"
    category = "perception"
    description = "This tool extracts text from videos using OCR."
    version = "1"
    outputs = (
        Parameter(type="text", description="Extracted text from the video with bounding boxes."),
    )

    def engine(self) -> Engine | Unavailable:
        """Return the engine of the OCR tool."""
        state = check_text()
        return state if isinstance(state, Unavailable) else Engine(state.backend, _read_frame)

    def summarize(self, sampled: Sample, found: Sequence[tuple[int, str]]) -> str:
        """Return a line for each frame whose text is new."""
        if not any(texts for _, texts in found):
            return f"{NOTHING} {sampled.note}"
        before = ["", *(texts for _, texts in found)]
        changed = [
            (number, texts)
            for (number, texts), previous in zip(found, before, strict=False)
            if texts and texts != previous
        ]
        return report(sampled, changed, remark=SAME)


async def _read_frame(png: bytes) -> str:
    lines = await read_text(png, "the frame")
    return " | ".join(f"{line.box} {line.text}" for line in lines)
