"""The stretch of a recording that an agent asks for."""

from math import isfinite

from gta_bench.errors import ToolError
from gta_bench.tools.media.sound import Span

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
