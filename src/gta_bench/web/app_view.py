"""What the pages of the app show of runs: badges, figures and bars, all in words and positions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from gta_bench.errors import format_count
from gta_bench.records.progress import RunProgress
from gta_bench.records.run import RunMode
from gta_bench.reports.estimates import Estimate
from gta_bench.reports.summary import run_badges
from gta_bench.reports.tables import dollars
from gta_bench.web.app_runs import RunEntry, ScoreView
from gta_bench.web.components import (
    Badge,
    CauseCard,
    CauseCount,
    Figure,
    IntervalPlot,
    PlotPoint,
    PlotRow,
    StackBar,
    list_badges,
    plot_ticks,
    stack_counts,
)
from gta_bench.web.material import list_facts

CAUSES_SHOWN: Final = 3
MODES: Final[dict[RunMode, str]] = {
    "step": "GTA-Atomic, step by step",
    "end-to-end": "GTA-Atomic, end to end",
    "workflow": "GTA-Workflow",
}


class ProgressBar(NamedTuple):
    """The parts of a bar in percent: done, failed and running units."""

    done: float
    failed: float
    running: float
    about: str


class RunRow(NamedTuple):
    """A run on the page of all runs."""

    entry: RunEntry
    about: str
    badges: tuple[Badge, ...]
    work: str
    plot: IntervalPlot | None
    headline: str
    small: str
    causes: tuple[CauseCount, ...]
    took: str
    cost: str


class LiveRun(NamedTuple):
    """A run in progress."""

    row: RunRow
    bar: ProgressBar
    figures: tuple[Figure, ...]
    causes: tuple[tuple[str, int], ...]


def view_runs(entries: Sequence[RunEntry], problem: str = "") -> dict[str, Any]:
    """Return the page of all runs: those in progress, then the newest first.

    `problem` is that of their folder.
    """
    live = [view_live(entry) for entry in entries if entry.live]
    rest = sorted((entry for entry in entries if not entry.live), key=_age)
    return {
        "live": live,
        "rows": [view_row(entry) for entry in rest],
        "summary": problem or _summarize(entries),
        "wait": any(entry.reading for entry in entries),
    }


def view_run(entry: RunEntry) -> dict[str, Any]:
    """Return the page of one run."""
    scored, manifest = entry.scored, entry.manifest
    return {
        "entry": entry,
        "row": view_row(entry),
        "live": view_live(entry) if entry.live else None,
        "figures": _figures(entry),
        "cards": [] if scored is None else list(_cards(entry, scored)),
        "bar": None if scored is None else _outcomes(entry, scored),
        "facts": [] if manifest is None else list(list_facts(manifest)),
        "tasks": list_tasks(entry),
        "wait": entry.reading,
    }


def list_tasks(entry: RunEntry) -> Sequence[str]:
    """Return the tasks of a run."""
    return () if entry.manifest is None else entry.manifest.spec.tasks


def view_row(entry: RunEntry) -> RunRow:
    """Return a run as a row."""
    scored = entry.scored
    headline = None if scored is None else scored.headline
    plot, text, small = None, "", ""
    if headline is not None:
        one = headline.estimate
        plot = _plot(entry.name, one)
        text = f"{headline.label} {one.value:.1f} ({one.low:.1f} to {one.high:.1f})"
        small = f"n {one.n} of {format_count(len(list_tasks(entry)), 'task')}"
    return RunRow(
        entry=entry,
        about=describe_run(entry),
        badges=tuple(_badges(entry)),
        work=_work(entry),
        plot=plot,
        headline=text,
        small=small,
        causes=_first_causes(scored),
        took=_duration(None if scored is None else scored.seconds),
        cost=_cost(scored),
    )


def _plot(name: str, one: Estimate) -> IntervalPlot:
    """Return an interval on the same axis in every row, from 0 to 100."""
    at, low, high = (round(min(100.0, max(0.0, end)), 2) for end in (one.value, one.low, one.high))
    point = PlotPoint(name, one.value, one.low, one.high, "", mark="own")
    return IntervalPlot((PlotRow(point, at, low, high),), plot_ticks(100))


def view_live(entry: RunEntry) -> LiveRun:
    """Return a run in progress."""
    assert entry.status is not None
    progress = entry.status.progress
    return LiveRun(
        row=view_row(entry),
        bar=view_bar(progress),
        figures=tuple(live_figures(progress)),
        causes=tuple(progress.causes.items()),
    )


def view_bar(progress: RunProgress) -> ProgressBar:
    """Return the parts of a progress bar.

    >>> from datetime import UTC, datetime
    >>> from gta_bench.records.progress import RunProgress
    >>> now = datetime(2026, 11, 18, tzinfo=UTC)
    >>> view_bar(RunProgress(units=8, done=4, failed=2, running=1, started=now, updated=now))[:3]
    (50.0, 75.0, 87.5)
    """
    whole = max(1, progress.units)
    ends, at = [], 0
    for part in (progress.done, progress.failed, progress.running):
        at = min(whole, at + part)
        ends.append(round(100 * at / whole, 2))
    about = (
        f"{progress.done} of {format_count(progress.units, 'unit')} done, "
        f"{progress.failed} failed, {progress.running} running"
    )
    return ProgressBar(ends[0], ends[1], ends[2], about)


def live_figures(progress: RunProgress) -> list[Figure]:
    """Return the figures of a run in progress."""
    left = progress.left
    known = progress.cost_usd is not None or progress.known_usd is not None
    cost = progress.cost_usd if progress.cost_usd is not None else progress.known_usd
    more = "and more at an unknown price" if progress.cost_usd is None and known else ""
    rate = "" if progress.rate is None else f"{progress.rate:.3g} per minute"
    return [
        Figure("done", f"{progress.done:,} of {progress.units:,}", rate),
        Figure("running", f"{progress.running:,}"),
        Figure("failed", f"{progress.failed:,}"),
        Figure(
            "time left",
            "unknown" if left is None else f"about {format_span(left)}",
            "",
            left is not None,
        ),
        Figure("cost so far", dollars(cost) if known else "unknown", more, known),
    ]


def describe_run(entry: RunEntry) -> str:
    """Return system and mode of a run in a line."""
    mode = entry.mode
    return entry.problem if mode is None else f"{entry.system} · {MODES[mode]}"


def _badges(entry: RunEntry) -> list[Badge]:
    found: list[Badge] = []
    if entry.problem:
        return [Badge("cannot be read", "bad")]
    state = None if entry.status is None else entry.status.state
    if state == "running":
        found.append(Badge("running", "acc"))
    elif entry.reading:
        found.append(Badge("being read"))
    elif state == "stopped":
        found.append(Badge("stopped", "warn"))
    elif entry.scored is None or not entry.judged:
        found.append(
            Badge("not judged yet" if entry.mode == "workflow" else "not scored yet", "warn")
        )
    elif _complete(entry.scored):
        found.append(Badge("done", "good"))
    if entry.scored is not None:
        return [*found, *entry.scored.badges]
    texts = () if entry.manifest is None else run_badges(entry.manifest)
    return [*found, *list_badges(texts, n=0, n_units=0)]


def _complete(scored: ScoreView) -> bool:
    return scored.n == scored.n_units and scored.leaves == scored.n_leaves


def _work(entry: RunEntry) -> str:
    """Return how much of a run has a result."""
    scored, status = entry.scored, entry.status
    if scored is None:
        return (
            "" if status is None else f"{status.progress.done:,} of {status.progress.units:,} units"
        )
    text = f"{scored.n:,} of {scored.n_units:,} units"
    if scored.n_leaves:
        text += f" · {scored.leaves:,} of {scored.n_leaves:,} leaves"
    return text


def _first_causes(scored: ScoreView | None) -> tuple[CauseCount, ...]:
    causes = () if scored is None else scored.causes
    return tuple(CauseCount(one.cause, one.failures) for one in causes[:CAUSES_SHOWN])


def _figures(entry: RunEntry) -> list[Figure]:
    scored = entry.scored
    if scored is None:
        return []
    found = []
    if scored.headline is not None:
        one = scored.headline.estimate
        span = f"95 %: {one.low:.1f} to {one.high:.1f}, n {one.n}"
        found.append(Figure(scored.headline.label, f"{one.value:.1f}", span))
    found.append(Figure("units", f"{scored.n:,} of {scored.n_units:,}"))
    if scored.n_leaves:
        found.append(Figure("leaves scored", f"{scored.leaves:,} of {scored.n_leaves:,}"))
    cost, took = _cost(scored), _duration(scored.seconds)
    return [
        *found,
        Figure("cost", cost.removeprefix("cost "), "", scored.cost_usd is not None),
        Figure("time of tasks", took.removeprefix("time "), "", scored.seconds is not None),
    ]


def _cards(entry: RunEntry, scored: ScoreView) -> list[CauseCard]:
    return [
        CauseCard(
            cause=one.cause,
            number=one.failures,
            about=f"in {format_count(one.tasks, 'task')}",
            example="",
            href=f"/failures?run={entry.id}&cause={one.cause.replace(' ', '+')}",
        )
        for one in scored.causes
    ]


def _outcomes(entry: RunEntry, scored: ScoreView) -> StackBar | None:
    """Return one bar of everything that passed, failed or has no score."""
    whole = scored.n_leaves if entry.mode == "workflow" else 0
    if not whole:
        return None
    passed = max(0, whole - scored.failed)
    counts = [("passed", passed), *((one.cause, one.failures) for one in scored.causes)]
    return stack_counts(counts, format_count(whole, "leaf", "leaves"))


def _cost(scored: ScoreView | None) -> str:
    known = scored is not None and scored.cost_usd is not None
    return dollars(scored.cost_usd) if scored is not None and known else "cost unknown"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "time unknown"
    return f"{seconds:.1f} s" if seconds < 100 else format_span(timedelta(seconds=seconds))


def format_span(time: timedelta) -> str:
    """Return a duration with two units at most.

    >>> from datetime import timedelta
    >>> [format_span(timedelta(minutes=minutes)) for minutes in (0.7, 75, 3000)]
    ['42 s', '1 h 15 min', '50 h']
    """
    seconds = round(time.total_seconds())
    if seconds < 100:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 10 and minutes else f"{hours} h"


def _summarize(entries: Sequence[RunEntry]) -> str:
    if not entries:
        return "No runs yet. `gta run`, `gta import` and `gta demo` create them."
    live = sum(entry.live for entry in entries)
    units = sum(entry.manifest.spec.units for entry in entries if entry.manifest is not None)
    text = f"{format_count(len(entries), 'run')}, {units:,} units"
    return f"{text}; {live} in progress." if live else f"{text}. Choose two to compare them."


def _age(entry: RunEntry) -> tuple[float, str]:
    created = datetime.min.replace(tzinfo=UTC) if entry.manifest is None else entry.manifest.created
    return -(created - datetime(2000, 1, 1, tzinfo=UTC)).total_seconds(), entry.name
