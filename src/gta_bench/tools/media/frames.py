"""Frames of a video at even times, and the base class of the tools that look at them."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from pydantic import Field

from gta_bench.confine.jail import Jail
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import ToolError
from gta_bench.tools.contract import (
    Availability,
    Available,
    Made,
    Tool,
    ToolInput,
    Unavailable,
    require,
    text,
)
from gta_bench.tools.media import ffmpeg
from gta_bench.tools.media.probing import ProbedFile, open_media

FEWEST, MOST = 4, 16
AT_ONCE = 4  # positions that one process decodes, so that large pictures fit into its memory
DEFAULT_RATE = 25.0  # for streams that have neither times nor a rate
MOST_TEXT = 20_000
MOST_LINE = 4_000


class Frame(NamedTuple):
    """One frame; numbers count from 0, times from the start of the video."""

    number: int
    seconds: float
    png: bytes


@dataclass(frozen=True)
class Sample:
    """Some frames of a video, and how many there are in total."""

    frames: tuple[Frame, ...]
    total: int
    seconds: float

    @property
    def note(self) -> str:
        """Return which frames these are, for the agent."""
        times = ", ".join(f"{frame.seconds:.2f}" for frame in self.frames)
        return (
            f"Looked at {len(self.frames)} of {self.total} frames of the {self.seconds:.2f} s, "
            f"at {times} s."
        )


async def sample(jail: Jail, source: ProbedFile, *, longest: int | None = None) -> Sample:
    """Return one frame per second, but at least 4 and at most 16, evenly spread.

    `longest` limits the longer side in pixels; without it, frames keep the video's size.
    """
    picture = source.need_picture()
    times = await _frame_times(jail, source)
    spread = _spread(times)
    numbers = choose(times, spread, count=min(MOST, max(FEWEST, ceil(spread))))
    starts = [times[number] for number in numbers]
    # Half a frame early, so that rounding cannot skip the wanted one.
    early = spread / len(times) / 2
    pngs: list[bytes] = []
    scale = _scale(picture.width, picture.height, longest)
    for first in range(0, len(starts), AT_ONCE):
        group = [max(0.0, start - early) for start in starts[first : first + AT_ONCE]]
        pngs += await _extract(jail, source, group, scale)
    frames = tuple(
        Frame(number, start, png)
        for number, start, png in zip(numbers, starts, pngs, strict=True)
        if png
    )
    if not frames:
        raise ToolError(f"No frame of `{source.path}` can be decoded.")
    return Sample(frames, len(times), spread)


def choose(times: Sequence[float], spread: float, *, count: int) -> list[int]:
    """Return the frames in the middle of each of `count` equal parts, each once."""
    middles = (times[0] + (part + 0.5) * spread / count for part in range(count))
    return sorted({max(0, bisect_right(times, middle) - 1) for middle in middles})


async def _frame_times(jail: Jail, source: ProbedFile) -> list[float]:
    """Return when each frame is shown, counted from the start of the file; decodes nothing."""
    entries = ["-select_streams", "V:0", "-show_entries", "packet=pts_time,dts_time,flags"]
    printed = await ffmpeg.look(jail, source.data, [*entries, "-of", "csv=p=0"], path=source.path)
    rows = [row.split(",") for row in printed.decode("ascii", "replace").splitlines() if row]
    shown = [row for row in rows if len(row) >= 3 and "D" not in row[2]]  # D: decoded, not shown
    if not shown:
        raise ToolError(f"`{source.path}` has no frames.")
    try:
        times = sorted(float(pts if pts != "N/A" else dts) for pts, dts, *_ in shown)
    except ValueError:
        rate = source.need_picture().rate or DEFAULT_RATE
        return [number / rate for number in range(len(shown))]
    return [max(0.0, time - source.media.start) for time in times]


def _spread(times: Sequence[float]) -> float:
    """Return the seconds from the first frame to the end of the last one.

    The last one counts as long as the others on average.
    """
    if len(times) < 2 or times[-1] <= times[0]:
        return 1 / DEFAULT_RATE
    return (times[-1] - times[0]) * len(times) / (len(times) - 1)


def _scale(width: int, height: int, longest: int | None) -> list[str]:
    if longest is None or max(width, height) <= longest:
        return []
    side = f"{longest}:-1" if width >= height else f"-1:{longest}"
    return ["-vf", f"scale={side}"]


async def _extract(
    jail: Jail, source: ProbedFile, starts: Sequence[float], scale: Sequence[str]
) -> list[bytes]:
    """Return the first frame from each time on; empty if nothing can be decoded there."""
    arguments: list[str] = []
    for start in starts:
        seek = ["-threads", "1", "-ss", f"{start:.6f}"]
        arguments += ffmpeg.reading(ffmpeg.INPUT, *seek)
    for index in range(len(starts)):
        arguments += ["-map", f"{index}:V:0", *scale, "-frames:v", "1", "-c:v", "png"]
        arguments += ["-f", "image2", "-update", "1", f"{index}.png"]
    problem = f"The frames of `{source.path}` cannot be decoded"
    made = await ffmpeg.convert(jail, {ffmpeg.INPUT: source.data}, arguments, problem=problem)
    return [made.get(f"{index}.png", b"") for index in range(len(starts))]


def report(sampled: Sample, lines: Iterable[tuple[int, str]], *, remark: str = "") -> str:
    """Return a line for each pair of frame number and finding, then which frames were used."""
    kept: list[str] = []
    room, left_out = MOST_TEXT, 0
    for number, content in lines:
        flat = " ".join(content.split())
        cut = flat if len(flat) <= MOST_LINE else f"{flat[:MOST_LINE]}… (cut)"
        line = f"Frame {number}: {cut}"
        room -= len(line) + 1
        if room < 0:
            left_out += 1
        else:
            kept.append(line)
    if left_out:
        kept.append(f"({left_out} more frames are left out: the text would be too long.)")
    return "\n".join([*kept, f"{sampled.note} {remark}".strip()])


class VideoInput(ToolInput):
    """A video."""

    video: str = Field(description="Path to the input video file.")


class Engine(NamedTuple):
    """What looks at a frame: it takes a PNG and returns its finding as one line."""

    backend: str
    look: Callable[[bytes], Awaitable[str]]


class FrameTool(Tool[VideoInput]):
    """A tool that looks at sampled frames with an engine, one after the other."""

    input_type = VideoInput
    longest_side: int | None = None

    @abstractmethod
    def engine(self) -> Engine | Unavailable:
        """Return the engine that looks at the frames here."""

    def summarize(self, sampled: Sample, found: Sequence[tuple[int, str]]) -> str:
        """Return the text for the agent; `found` has the number and finding of each frame."""
        return report(sampled, found)

    def check(self) -> Availability:
        found = ffmpeg.missing(self.equipment) or self.engine()
        return found if isinstance(found, Unavailable) else Available(found.backend)

    async def apply(self, workspace: Workspace, given: VideoInput) -> Made:
        engine = require(self.engine())
        jail = self.equipment.need_jail()
        source = await open_media(jail, workspace, given.video)
        sampled = await sample(jail, source, longest=self.longest_side)
        summary = await self.describe(engine, sampled)
        backend = f"{engine.backend}, {ffmpeg.program().backend}"
        return Made((text(summary),), backend=backend, jail=jail.kind)

    async def describe(self, engine: Engine, sampled: Sample) -> str:
        """Look at each frame and return the text for the agent."""
        found = [(frame.number, await engine.look(frame.png)) for frame in sampled.frames]
        return self.summarize(sampled, found)
