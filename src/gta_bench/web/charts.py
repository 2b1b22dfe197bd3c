"""Where lines and dots lie in a picture; the templates draw them, and text stands beside them."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from gta_bench.metrics.table import LEAF_SR, ROOT_SR
from gta_bench.records.workflow_scores import CurvePoint

# Inside of the axes, in units of the picture.
WIDTH: Final = 260
HEIGHT: Final = 130
TICKS: Final = 4


class _Tick(NamedTuple):
    """A place on an axis with its label."""

    at: float
    label: str


class _Line(NamedTuple):
    """A line with the name of its style."""

    name: str
    points: str


class Dot(NamedTuple):
    """A numbered dot; on the front where no other is better in both ways."""

    x: float
    y: float
    label: str
    front: bool


class Chart(NamedTuple):
    """A picture of lines or dots; `about` says in words what is to be seen."""

    about: str
    x_label: str
    y_label: str
    x_ticks: tuple[_Tick, ...]
    y_ticks: tuple[_Tick, ...]
    lines: tuple[_Line, ...] = ()
    dots: tuple[Dot, ...] = ()
    width: int = WIDTH
    height: int = HEIGHT


class Spent(NamedTuple):
    """A system as a dot: what it took for a task, and how good it was."""

    label: str
    spent: float
    score: float


def curve_chart(points: Sequence[CurvePoint]) -> Chart:
    """Both success rates by threshold."""
    lines = []
    for row in (LEAF_SR, ROOT_SR):
        rates = [(point.threshold, getattr(point, row.name)) for point in points]
        places = [
            f"{threshold * WIDTH / 10:g},{_down(rate):g}"
            for threshold, rate in rates
            if rate is not None
        ]
        lines.append(_Line(row.name.removesuffix("_sr"), " ".join(places)))
    return Chart(
        about=f"{LEAF_SR.label} and {ROOT_SR.label} fall as the threshold rises; the table beside "
        "has the numbers.",
        x_label="threshold",
        y_label="% that reach it",
        x_ticks=tuple(_Tick(number * WIDTH / 10, str(number)) for number in range(0, 11, 2)),
        y_ticks=_percents(),
        lines=tuple(lines),
    )


def spent_chart(systems: Sequence[Spent], *, x_label: str, y_label: str) -> Chart:
    """What systems took against what they reached, with the front of those that none beats."""
    best = front(systems)
    end = nice_end(max(one.spent for one in systems))
    dots = tuple(
        Dot(round(one.spent / end * WIDTH, 1), _down(one.score), one.label, one in best)
        for one in systems
    )
    corners = sorted({(dot.x, dot.y) for dot in dots if dot.front})
    return Chart(
        about=f"{y_label} by {x_label}; on the front: {', '.join(one.label for one in best)}.",
        x_label=x_label,
        y_label=y_label,
        x_ticks=tuple(
            _Tick(WIDTH * part / TICKS, f"{end * part / TICKS:g}") for part in range(TICKS + 1)
        ),
        y_ticks=_percents(),
        lines=(_Line("front", " ".join(f"{x:g},{y:g}" for x, y in corners)),),
        dots=dots,
    )


def front(systems: Sequence[Spent]) -> list[Spent]:
    """Those that no other beats: none is as good for less, or better for as little."""
    return [
        one
        for one in systems
        if not any(
            other.spent <= one.spent
            and other.score >= one.score
            and (other.spent, other.score) != (one.spent, one.score)
            for other in systems
        )
    ]


def nice_end(highest: float) -> float:
    """The end of an axis: 1, 2 or 4 times a power of ten, so that its quarters are short."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(power * step for step in (1, 2, 4, 10) if power * step >= highest)


def _down(percent: float) -> float:
    """A percentage as a place from the top."""
    return round(HEIGHT * (1 - percent / 100), 1)


def _percents() -> tuple[_Tick, ...]:
    return tuple(_Tick(_down(percent), str(percent)) for percent in (0, 25, 50, 75, 100))
