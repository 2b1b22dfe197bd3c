"""Coordinates of charts, which the templates draw; a table next to each chart has the numbers."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from gta_bench.metrics.table import LEAF_SR, ROOT_SR
from gta_bench.records.workflow_scores import CurvePoint

# The plot area in units of the picture.
WIDTH: Final = 260
HEIGHT: Final = 130
TICKS: Final = 4
# The threshold at which the name of each rate stands.
LABELED: Final = {LEAF_SR.name: 2.0, ROOT_SR.name: 5.0}


class _Tick(NamedTuple):
    at: float
    label: str


class _Line(NamedTuple):
    """A line; `name` selects its style, and `label` stands at `label_at`."""

    name: str
    points: str
    label: str = ""
    label_at: tuple[float, float] = (0.0, 0.0)


class _Dot(NamedTuple):
    x: float
    y: float
    label: str
    front: bool


class Chart(NamedTuple):
    """A chart of lines or dots; `about` describes it for screen readers."""

    about: str
    x_label: str
    y_label: str
    x_ticks: tuple[_Tick, ...]
    y_ticks: tuple[_Tick, ...]
    lines: tuple[_Line, ...] = ()
    dots: tuple[_Dot, ...] = ()
    marker: _Tick | None = None
    width: int = WIDTH
    height: int = HEIGHT


class Spent(NamedTuple):
    """A system with its cost or time per task and its score."""

    label: str
    spent: float
    score: float


def draw_curve(points: Sequence[CurvePoint], *, threshold: float | None = None) -> Chart:
    """Draw both success rates by threshold, with a mark at the one in use."""
    lines = []
    for row in (LEAF_SR, ROOT_SR):
        rates = [(point.threshold, getattr(point, row.name)) for point in points]
        corners = [
            f"{threshold * WIDTH / 10:g},{_height(rate):g}"
            for threshold, rate in rates
            if rate is not None
        ]
        # Leaf SR is labeled left of the middle, Root SR right of it, each above its line.
        at = LABELED[row.name]
        near = next((rate for place, rate in rates if place >= at and rate is not None), 0.0)
        place = (at * WIDTH / 10, max(8.0, _height(near) - 5))
        name = row.name.removesuffix("_sr")
        lines.append(_Line(name, " ".join(corners), row.label, place))
    return Chart(
        about=f"{LEAF_SR.label} and {ROOT_SR.label} by threshold; the table has the numbers.",
        x_label="score from which a leaf or task passes",
        y_label="% that reach it",
        x_ticks=tuple(_Tick(number * WIDTH / 10, str(number)) for number in range(0, 11, 2)),
        y_ticks=_percent_ticks(),
        lines=tuple(lines),
        marker=None
        if threshold is None
        else _Tick(threshold * WIDTH / 10, f"pass at {threshold:g}"),
    )


def draw_front(systems: Sequence[Spent], *, x_label: str, y_label: str) -> Chart:
    """Draw the score of systems by cost or time, with the Pareto front."""
    best = find_front(systems)
    end = axis_end(max(one.spent for one in systems))
    dots = tuple(
        _Dot(round(one.spent / end * WIDTH, 1), _height(one.score), one.label, one in best)
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
        y_ticks=_percent_ticks(),
        lines=(_Line("front", " ".join(f"{x:g},{y:g}" for x, y in corners)),),
        dots=dots,
    )


def find_front(systems: Sequence[Spent]) -> list[Spent]:
    """Return the Pareto front: no other system is at least as good for at most as much."""
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


def axis_end(highest: float) -> float:
    """Return the end of an axis: 1, 2 or 4 times a power of ten, so that tick labels are short."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(power * step for step in (1, 2, 4, 10) if power * step >= highest)


def _height(percent: float) -> float:
    """Return the distance of a percentage from the top of the plot."""
    return round(HEIGHT * (1 - percent / 100), 1)


def _percent_ticks() -> tuple[_Tick, ...]:
    return tuple(_Tick(_height(percent), str(percent)) for percent in (0, 25, 50, 75, 100))
