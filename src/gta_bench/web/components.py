"""Data of the components that every page shares; `components.css` lists their macros.

Positions are in percent of a plot's width, so that templates compute nothing.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from gta_bench.errors import format_count
from gta_bench.records.failures import FailureCause

# How much a badge limits a result; "" is neutral.
BadgeKind = Literal["", "warn", "good", "bad", "none", "acc"]
# Beginnings of badges that say nothing against a result.
HARMLESS: Final = (
    "similarity all-mpnet",
    "published prompts",
    "prompts in our own words",
    "imported",
)
# Filled circle: this run, or a reproduced one. Hollow circle: published. Diamond: self-reported.
PlotMark = Literal["own", "published", "reported"]
# Ends of an axis; half of each is a short number.
ENDS: Final = (1, 2, 4, 6, 8, 10)


class Badge(NamedTuple):
    """A limit of a result, in words."""

    text: str
    kind: BadgeKind = ""


def list_badges(texts: Iterable[str], *, n: int, n_units: int, missing: int = 0) -> Iterator[Badge]:
    """Yield everything that limits a result, in the report as in the app.

    `texts` are those of the run's summary, `n` of `n_units` units have a score, and `missing`
    leaves have none.

    >>> [one.text for one in list_badges(["imported"], n=3, n_units=4, missing=1)]
    ['not rankable: 3 of 4 scored', '1 leaf unscored', 'imported']
    """
    if n < n_units:
        yield Badge(f"not rankable: {n:,} of {n_units:,} scored", "warn")
    if missing:
        yield Badge(f"{format_count(missing, 'leaf', 'leaves')} unscored", "none")
    for text in texts:
        yield Badge(text, "" if text.startswith(HARMLESS) else "warn")


class Figure(NamedTuple):
    """A number with its name and a small line below; `known` is False for "not recorded"."""

    name: str
    text: str
    small: str = ""
    known: bool = True


class PlotPoint(NamedTuple):
    """A value with its interval, on the scale of its metric, for one row of a plot."""

    name: str
    value: float
    low: float
    high: float
    text: str
    small: str = ""
    note: str = ""
    href: str = ""
    mark: PlotMark = "published"
    current: bool = False


class PlotRow(NamedTuple):
    """A point with its positions."""

    point: PlotPoint
    at: float
    low: float
    high: float


class PlotTick(NamedTuple):
    """A label of an axis, and how it is anchored there."""

    at: float
    label: str
    anchor: Literal["start", "middle", "end"]


class IntervalPlot(NamedTuple):
    """Rows of intervals on one axis that starts at zero."""

    rows: tuple[PlotRow, ...]
    ticks: tuple[PlotTick, ...]


class Segment(NamedTuple):
    """A part of a bar: a cause or an outcome, how often it occurs, and its positions."""

    name: str
    number: int
    start: float
    end: float

    @property
    def css(self) -> str:
        """The class with its color."""
        return cause_class(self.name)


class StackBar(NamedTuple):
    """One bar of everything, with a text for screen readers."""

    segments: tuple[Segment, ...]
    about: str


class CauseCard(NamedTuple):
    """A cause with its count, as a link; `cause` is what the link filters."""

    cause: FailureCause
    number: int
    about: str
    example: str
    href: str

    @property
    def css(self) -> str:
        """The class with its color."""
        return cause_class(self.cause)


class CauseCount(NamedTuple):
    """How often a cause occurs in a task."""

    cause: str
    number: int

    @property
    def css(self) -> str:
        """The class with its color."""
        return cause_class(self.cause)


class TaskRow(NamedTuple):
    """The closed row of a task; `states` has one of passed, failed, unscored for each leaf."""

    anchor: str
    name: str
    title: str
    small: str
    state: str
    score: str
    states: tuple[str, ...]
    strip: str
    causes: tuple[CauseCount, ...]
    work: str
    work_small: str = ""
    order: float = 0.0


def cause_class(name: str) -> str:
    """Return the class with the color of a cause or outcome."""
    return f"cause-{name.replace(' ', '-')}"


def plot_intervals(
    points: Sequence[PlotPoint],
    *,
    end: float | None = None,
    top: float = 100.0,
    unit: str = " %",
) -> IntervalPlot:
    """Place points on an axis from zero to `end`, or to a short number that none of them exceeds.

    `top` is the largest value of the metric; the last tick has the unit.
    """
    if end is None:
        end = plot_end(max((max(one.high, one.value) for one in points), default=top), top=top)
    rows = tuple(
        PlotRow(one, *(_place(value, end) for value in (one.value, one.low, one.high)))
        for one in points
    )
    return IntervalPlot(rows, plot_ticks(end, unit=unit))


def plot_end(highest: float, *, top: float = 100.0) -> float:
    """Return where an axis ends: `top`, or a short number below it.

    >>> plot_end(17.3), plot_end(0.0), plot_end(81.0), plot_end(3.4, top=10)
    (20.0, 1.0, 100.0, 4.0)
    """
    if highest <= 0:
        return min(top, 1.0)
    power = 10.0 ** math.floor(math.log10(highest))
    return min(top, next(power * step for step in ENDS if power * step >= highest))


def plot_ticks(end: float, *, unit: str = " %") -> tuple[PlotTick, ...]:
    """Return five ticks from zero to `end`; the first, the middle and the last have labels."""
    return (
        PlotTick(0, "0", "start"),
        PlotTick(25, "", "middle"),
        PlotTick(50, f"{end / 2:g}", "middle"),
        PlotTick(75, "", "middle"),
        PlotTick(100, f"{end:g}{unit}", "end"),
    )


def stack_counts(counts: Iterable[tuple[str, int]], what: str) -> StackBar:
    """Return a bar of counts in their order; what does not occur is left out.

    >>> stack_counts([("passed", 3), ("format", 1), ("context", 0)], "4 leaves").about
    '4 leaves: 3 passed, 1 format'
    """
    own = [(name, count) for name, count in counts if count]
    whole = sum(count for _, count in own)
    segments: list[Segment] = []
    for name, count in own:
        start = segments[-1].end if segments else 0.0
        end = start + 100 * count / whole
        segments.append(Segment(name, count, start, end))
    rounded = (one._replace(start=round(one.start, 2), end=round(one.end, 2)) for one in segments)
    about = ", ".join(f"{count:,} {name}" for name, count in own) or "nothing"
    return StackBar(tuple(rounded), f"{what}: {about}")


def describe_strip(states: Sequence[str], noun: str, nouns: str) -> str:
    """Return how many leaves or steps pass, and how many have no score.

    >>> describe_strip(["passed", "failed", "unscored"], "leaf", "leaves")
    '1 of 3 leaves pass, 1 unscored'
    """
    missing = states.count("unscored")
    text = f"{states.count('passed')} of {format_count(len(states), noun, nouns)} pass"
    return f"{text}, {missing} unscored" if missing else text


def _place(value: float, end: float) -> float:
    return round(min(100.0, max(0.0, 100 * value / end)), 2)
