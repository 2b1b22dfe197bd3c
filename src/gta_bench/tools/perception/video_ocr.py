"""VideoOCR: the text in a video, read from frames at even times."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from pydantic import Field

from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolUnavailable
from gta_bench.records.tools import Parameter
from gta_bench.tools.backends.local import check_text, read_text
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

SAME = "Frames that are not listed show the same text as the frame before, or none."
NOTHING = "No text was found."


class Reader(NamedTuple):
    """What reads a picture: a PNG in, lines `(x1, y1, x2, y2) text` out."""

    backend: str
    recognize: Callable[[bytes], Awaitable[Sequence[str]]]


class VideoOCRInput(ToolInput):
    """A file."""

    video: str = Field(description="Path to the input video file.")


class VideoOCR(Tool[VideoOCRInput]):
    """Reads each sampled frame; frames whose text repeats are left out."""

    name = "VideoOCR"
    category = "perception"
    description = "This tool extracts text from videos using OCR."
    version = "1"
    input_type = VideoOCRInput
    outputs = (
        Parameter(type="text", description="Extracted text from the video with bounding boxes."),
    )

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or reader(self.equipment)
        return Available(found.backend) if isinstance(found, Reader) else found

    async def apply(self, workspace: Workspace, given: VideoOCRInput) -> Made:
        found = reader(self.equipment)
        if isinstance(found, Unavailable):
            raise ToolUnavailable(found.reason, mend=found.mend)
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.video)
        words = await read_frames(found, await sample(jail, source))
        backend = f"{found.backend}, {ffmpeg.program().backend}"
        return Made((text(words),), backend=backend, jail=jail.kind)


async def read_frames(reader: Reader, sampled: Sample) -> str:
    """What stands in the frames, one line a frame."""
    read = [
        (frame.number, " | ".join(await reader.recognize(frame.png))) for frame in sampled.frames
    ]
    if not any(words for _, words in read):
        return f"{NOTHING} {sampled.note}"
    return report(sampled, _changes(read), remark=SAME)


def _changes(read: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    before = ""
    for number, words in read:
        if words and words != before:
            yield number, words
        before = words


def reader(equipment: Equipment) -> Reader | Unavailable:
    """The engine of the OCR tool."""
    state = check_text()
    if isinstance(state, Unavailable):
        return state

    async def recognize(png: bytes) -> Sequence[str]:
        return [f"{line.box} {line.text}" for line in await read_text(png, "the frame")]

    return Reader(state.backend, recognize)
