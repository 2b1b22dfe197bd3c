"""How `gta` writes: data on stdout, words for people on stderr, bars while it works."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from math import ceil

import click
from pydantic import JsonValue
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TransferSpeedColumn,
)

from gta_bench.cli.again import same_command
from gta_bench.datasets.fetch import Progress as ReportProgress
from gta_bench.records.finding import Severity
from gta_bench.records.progress import RunProgress
from gta_bench.redaction import current_redactor
from gta_bench.reports.tables import Table

COLORS: Mapping[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}


def write_json(value: JsonValue) -> None:
    """One JSON value on stdout."""
    click.echo(_printable(json.dumps(value, indent=2, ensure_ascii=False)))


def _printable(text: str) -> str:
    """The text without keys, since terminals are logged, too.

    Half a character, which no file can hold, is written as `\\ud800`: JSON reads it back.
    """
    return current_redactor().text(text).encode("utf-8", "backslashreplace").decode()


def write_rows(rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns on stdout; the last one is as long as it wants."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo(_printable("  ".join([*cells, row[-1]]).rstrip()))


def write_table(table: Table, words: tuple[int, ...]) -> None:
    """A table on stdout; columns of `words` are flush left, those of numbers flush right."""
    widths = [max(map(len, column)) for column in zip(table.heading, *table.rows, strict=True)]
    for row in (table.heading, *table.rows):
        cells = [
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo(_printable("  ".join(cells).rstrip()))


def say(text: str) -> None:
    """A word for people on stderr."""
    click.echo(_printable(text), err=True)


@contextmanager
def download_bar(name: str) -> Iterator[ReportProgress]:
    """A bar on stderr for one download; silent where stderr is not a terminal."""
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with _bars(columns) as bars:
        task = bars.add_task(name, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@contextmanager
def unit_bar(name: str) -> Iterator[Callable[[RunProgress], None]]:
    """A bar on stderr for units of all shards: finished, failed and why, running, rate, rest, cost.

    Where stderr is no terminal, a plain line says the same every 30 s and at every new cause of
    failures. What stopped a run early is always said, with the command that goes on.
    """
    columns = (
        TextColumn(name, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with _bars(columns) as bars, ExitStack() as stack:
        lines = stack.enter_context(plain_lines(name)) if bars.disable else None
        task = bars.add_task(name, total=None, words="")

        def told(progress: RunProgress) -> None:
            words = " · ".join(progress_words(progress, most_causes=1))
            bars.update(task, total=progress.units, completed=progress.done, words=words)
            if lines is not None:
                lines.take(progress)
            if progress.stopped is not None:
                say(f"{name}: {stop_words(progress)}")

        yield told


def stop_words(progress: RunProgress) -> str:
    """Which limit stopped a run, what it kept from beginning, and the command that goes on."""
    needed = progress.needed_usd
    raised = {} if needed is None else {"--max-cost": f"{_rounded_up(needed)}"}
    left = progress.units - progress.done - progress.failed
    units = "1 unit was" if left == 1 else f"{left} units were"
    return f"{progress.stopped}; {units} not begun. Continue with: {same_command(raised)}"


class PlainLines:
    """Says how far a run is where no bar can be drawn: now and then, and at every new cause."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last: RunProgress | None = None
        self._known: set[str] = set()

    def take(self, progress: RunProgress) -> None:
        """Remember how far the run is; a cause that was never said is said at once."""
        self._last = progress
        new = progress.causes.keys() - self._known
        if new:
            self._known |= new
            self.say()

    def say(self) -> None:
        """A line with the last that was told."""
        last = self._last
        if last is not None:
            words = [f"{last.done} of {last.units} units", *progress_words(last)]
            say(f"{self._name}: {' · '.join(words)}")


@contextmanager
def plain_lines(name: str, *, seconds: float = 30) -> Iterator[PlainLines]:
    """Lines about a run every so many seconds, also while nothing ends."""
    lines, ended = PlainLines(name), threading.Event()

    def say_often() -> None:
        while not ended.wait(seconds):
            lines.say()

    thread = threading.Thread(target=say_often, daemon=True)
    thread.start()
    try:
        yield lines
    finally:
        ended.set()
        thread.join()


def cause_words(causes: Mapping[str, int]) -> list[str]:
    """Each cause with how many units it ended."""
    return [f"{count} x {cause}" for cause, count in causes.items()]


def progress_words(progress: RunProgress, most_causes: int | None = None) -> list[str]:
    """What is worth saying of a run beside how many units are finished."""
    words = [f"{progress.failed} failed", f"{progress.running} running"]
    if progress.rate is not None:
        words.append(f"{progress.rate:.3g} a minute")
    if progress.left is not None and progress.done < progress.units:
        words.append(f"{_clock(progress.left)} left")
    if progress.cost_usd is not None:
        words.append(f"${progress.cost_usd:.2f}")
    return words + cause_words(progress.causes)[:most_causes]


def _rounded_up(dollars: float) -> float:
    """Whole dollars, or cents where it is little."""
    return ceil(dollars) if dollars >= 10 else ceil(100 * dollars) / 100


def _clock(time: timedelta) -> str:
    minutes, seconds = divmod(round(time.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def _bars(columns: Sequence[ProgressColumn]) -> Progress:
    """Bars on a terminal; nothing at all elsewhere."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
