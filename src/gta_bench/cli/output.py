"""How `gta` prints: data on stdout, messages on stderr, progress bars on terminals."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
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

from gta_bench.cli.lazy import same_command
from gta_bench.datasets.fetch import Progress as ReportProgress
from gta_bench.records.finding import Severity
from gta_bench.records.progress import RunProgress
from gta_bench.redaction import current_redactor
from gta_bench.reports.tables import Table

# Whether to write a message: all but inside of `say_once` and `say_nothing`.
_WANTED: ContextVar[Callable[[str], bool]] = ContextVar("wanted", default=lambda _: True)
COLORS: Mapping[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}


def write_json(value: JsonValue) -> None:
    """Write one JSON value to stdout."""
    click.echo(_printable(json.dumps(value, indent=2, ensure_ascii=False)))


def _printable(text: str) -> str:
    """Redact secrets, because terminals are logged too, and escape lone surrogates.

    A lone surrogate cannot be encoded; it is written as `\\ud800`, which JSON reads back.
    """
    return current_redactor().text(text).encode("utf-8", "backslashreplace").decode()


def write_rows(rows: Sequence[Sequence[str]]) -> None:
    """Write aligned columns to stdout; the last column is not padded."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo(_printable("  ".join([*cells, row[-1]]).rstrip()))


def write_table(table: Table, words: tuple[int, ...]) -> None:
    """Write a table to stdout; columns in `words` are left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(table.heading, *table.rows, strict=True)]
    for row in (table.heading, *table.rows):
        cells = [
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo(_printable("  ".join(cells).rstrip()))


def say(text: str) -> None:
    """Write a message to stderr."""
    if _WANTED.get()(text):
        click.echo(_printable(text), err=True)


def say_once() -> AbstractContextManager[None]:
    """Write a message that is repeated inside the block only the first time."""
    said: set[str] = set()

    def is_new(text: str) -> bool:
        new = text not in said
        said.add(text)
        return new

    return _say_only(is_new)


def say_nothing() -> AbstractContextManager[None]:
    """Write no messages inside the block."""
    return _say_only(lambda _: False)


@contextmanager
def _say_only(wanted: Callable[[str], bool]) -> Iterator[None]:
    outer = _WANTED.get()
    token = _WANTED.set(lambda text: outer(text) and wanted(text))
    try:
        yield
    finally:
        _WANTED.reset(token)


@contextmanager
def download_bar(name: str) -> Iterator[ReportProgress]:
    """Show a bar for one download on stderr; nothing if stderr is not a terminal."""
    with _show_bar(name, TextColumn(name), DownloadColumn(), TransferSpeedColumn()) as update:
        yield update


@contextmanager
def count_bar(name: str) -> Iterator[ReportProgress]:
    """Show a bar for things that are done one after another; nothing without a terminal."""
    with _show_bar(name, TextColumn(name, markup=False), MofNCompleteColumn()) as update:
        yield update


@contextmanager
def _show_bar(
    name: str, title: ProgressColumn, *figures: ProgressColumn
) -> Iterator[ReportProgress]:
    with _make_bars((title, BarColumn(), *figures)) as bars:
        task = bars.add_task(name, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@contextmanager
def unit_bar(name: str) -> Iterator[Callable[[RunProgress], None]]:
    """Show the progress of all shards on stderr: finished, failed, running, rate, time left, cost.

    If stderr is not a terminal, print a plain line every 30 s and at each new cause of failure.
    If a limit stops the run, always print why and the command that continues it.
    """
    columns = (
        TextColumn(name, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with _make_bars(columns) as bars, ExitStack() as stack:
        write_plain = stack.enter_context(plain_lines(name)) if bars.disable else None
        task = bars.add_task(name, total=None, words="")

        def listen(progress: RunProgress) -> None:
            words = " · ".join(describe_progress(progress, most_causes=1))
            bars.update(task, total=progress.units, completed=progress.done, words=words)
            if write_plain is not None:
                write_plain(progress)
            if progress.stopped is not None:
                say(f"{name}: {_describe_stop(progress)}")

        yield listen


def _describe_stop(progress: RunProgress) -> str:
    """Say which limit stopped a run, how many units did not start, and how to continue."""
    raised, needed = {}, progress.needed_usd
    if needed is not None:
        # Round up to whole dollars, or to cents below 10 dollars.
        cost = ceil(needed) if needed >= 10 else ceil(100 * needed) / 100
        raised["--max-cost"] = str(cost)
    left = progress.units - progress.done - progress.failed
    units = "1 unit was" if left == 1 else f"{left} units were"
    return f"{progress.stopped}; {units} not started. Continue with: {same_command(raised)}"


@contextmanager
def plain_lines(name: str, *, seconds: float = 30) -> Iterator[Callable[[RunProgress], None]]:
    """Print a line about a run every so many seconds, and at once for a new cause of failure.

    Yields a function that takes the progress. If lines were printed, the last one has the end.
    """
    last: RunProgress | None = None
    written: RunProgress | None = None
    known: set[str] = set()
    ended = threading.Event()

    def write() -> None:
        nonlocal written
        if last is not None:
            written = last
            # A long unit slows the rate although nothing has ended since.
            now = last.model_copy(update={"updated": datetime.now(UTC)})
            words = [f"{last.done} of {last.units} units", *describe_progress(now)]
            say(f"{name}: {' · '.join(words)}")

    def update(progress: RunProgress) -> None:
        nonlocal last
        last = progress
        if progress.causes.keys() - known:
            known.update(progress.causes)
            write()

    def write_regularly() -> None:
        while not ended.wait(seconds):
            write()

    thread = threading.Thread(target=write_regularly, daemon=True)
    thread.start()
    try:
        yield update
    finally:
        ended.set()
        thread.join()
        if written is not None and written != last:
            write()


@contextmanager
def say_if_slow(text: str, *, seconds: float = 5) -> Iterator[None]:
    """Write a message to stderr if what follows takes longer."""
    timer = threading.Timer(seconds, say, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def describe_causes(causes: Mapping[str, int]) -> list[str]:
    """Return each cause of failure with the number of units that it ended."""
    return [f"{count} x {cause}" for cause, count in causes.items()]


def describe_progress(progress: RunProgress, most_causes: int | None = None) -> list[str]:
    """Return what to show beside the number of finished units."""
    words = [f"{progress.failed} failed", f"{progress.running} running"]
    if progress.rate is not None:
        words.append(f"{progress.rate:.3g} per minute")
    if progress.left is not None and progress.done < progress.units:
        # Without fractions of a second.
        words.append(f"{timedelta(seconds=round(progress.left.total_seconds()))} left")
    if progress.cost_usd is not None:
        words.append(f"${progress.cost_usd:.2f}")
    return words + describe_causes(progress.causes)[:most_causes]


def _make_bars(columns: Sequence[ProgressColumn]) -> Progress:
    """Make progress bars that show nothing if stderr is not a terminal."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
