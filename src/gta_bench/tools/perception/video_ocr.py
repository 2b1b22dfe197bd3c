"""VideoOCR: the text in a video, read from frames at even times."""

from collections.abc import Iterator, Sequence

from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.local import check_text, read_text
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.media.frame_tool import Engine, FrameTool
from gta_bench.tools.media.frames import Sample
from gta_bench.tools.media.times import report

SAME = "Frames that are not listed show the same text as the frame before, or none."
NOTHING = "No text was found."

# Lines `(x1, y1, x2, y2) text`.
Reader = Engine[Sequence[str]]


class VideoOCR(FrameTool[Sequence[str]]):
    """Reads each sampled frame; frames whose text repeats are left out."""

    name = "VideoOCR"
    category = "perception"
    description = "This tool extracts text from videos using OCR."
    version = "1"
    outputs = (
        Parameter(type="text", description="Extracted text from the video with bounding boxes."),
    )

    def engine(self) -> Reader | Unavailable:
        """The engine of the OCR tool."""
        state = check_text()
        return state if isinstance(state, Unavailable) else Reader(state.backend, _recognize)

    async def words(self, engine: Reader, sampled: Sample) -> str:
        return await read_frames(engine, sampled)


async def read_frames(reader: Reader, sampled: Sample) -> str:
    """What stands in the frames, one line a frame."""
    read = [(frame.number, " | ".join(await reader.look(frame.png))) for frame in sampled.frames]
    if not any(words for _, words in read):
        return f"{NOTHING} {sampled.note}"
    return report(sampled, _changes(read), remark=SAME)


async def _recognize(png: bytes) -> Sequence[str]:
    return [f"{line.box} {line.text}" for line in await read_text(png, "the frame")]


def _changes(read: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    before = ""
    for number, words in read:
        if words and words != before:
            yield number, words
        before = words
