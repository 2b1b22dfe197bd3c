"""Times in a film: spans that a user names, and one line for every frame."""

from collections.abc import Iterable
from math import isfinite

from gta_bench.errors import ToolError
from gta_bench.tools.media.frames import Sample
from gta_bench.tools.media.sound import Span

MOST_TEXT = 20_000
MOST_LINE = 4_000


def report(sample: Sample, lines: Iterable[tuple[int, str]], *, remark: str = "") -> str:
    """Lines of (frame number, what is there), then which frames were looked at."""
    kept: list[str] = []
    room, left_out = MOST_TEXT, 0
    for number, content in lines:
        line = f"Frame {number}: {_cut(content)}"
        room -= len(line) + 1
        if room < 0:
            left_out += 1
        else:
            kept.append(line)
    if left_out:
        kept.append(f"({left_out} more frames are left out: the text would be too long.)")
    return "\n".join([*kept, f"{sample.note} {remark}".strip()])


def _cut(content: str) -> str:
    flat = " ".join(content.split())
    return flat if len(flat) <= MOST_LINE else f"{flat[:MOST_LINE]}… (cut)"


SLACK = 0.02  # a length rounded by the container is no reason to complain


def read_span(start: float | None, end: float | None, *, seconds: float | None, path: str) -> Span:
    """Start and end within the recording; whoever leaves one out means the whole."""
    begin = 0.0 if start is None else start
    for name, value in (("start_time", begin), ("end_time", end)):
        if value is not None and (not isfinite(value) or value < 0):
            raise ToolError(f"{name} is {value:g}; write seconds from the start, 0 or more.")
    if end is not None and end <= begin:
        raise ToolError(f"end_time ({end:g} s) must be later than start_time ({begin:g} s).")
    if seconds is not None and begin >= seconds:
        raise ToolError(f"`{path}` is {seconds:.2f} s long; start_time is {begin:g} s.")
    return Span(begin, end)


def shortfall(span: Span, got: float) -> str | None:
    """A sentence for the agent if the recording ended before the span did."""
    if span.end is None or got >= span.end - span.start - SLACK:
        return None
    asked = span.end - span.start
    return f"The recording ends early: the clip has {got:.2f} s instead of {asked:.2f} s."
