"""How `gta` writes: data on stdout, words for people on stderr, bars while it works."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

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

from gta_bench.datasets.download import Progress as ReportProgress
from gta_bench.records.finding import Severity
from gta_bench.records.progress import RunProgress
from gta_bench.reports.tables import Table

COLORS: Mapping[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}


def write_json(value: JsonValue) -> None:
    """One JSON value on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def write_rows(rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns on stdout; the last one is as long as it wants."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())


def write_table(table: Table, words: tuple[int, ...]) -> None:
    """A table on stdout; columns of `words` are flush left, those of numbers flush right."""
    widths = [max(map(len, column)) for column in zip(table.heading, *table.rows, strict=True)]
    for row in (table.heading, *table.rows):
        cells = [
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def say(text: str) -> None:
    """A word for people on stderr."""
    click.echo(text, err=True)


@contextmanager
def download_bar(name: str) -> Iterator[ReportProgress]:
    """A bar on stderr for one download; silent where stderr is not a terminal."""
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with _bars(columns) as bars:
        task = bars.add_task(name, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


@contextmanager
def unit_bar(name: str) -> Iterator[Callable[[RunProgress], None]]:
    """A bar on stderr for units of all shards: finished, failed, running, rate, rest, cost.

    Where stderr is no terminal, only what stopped a run early is said.
    """
    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with _bars(columns) as bars:
        task = bars.add_task(name, total=None, words="")

        def told(progress: RunProgress) -> None:
            words = " · ".join(progress_words(progress))
            bars.update(task, total=progress.units, completed=progress.done, words=words)
            if progress.stopped is not None:
                left = progress.units - progress.done
                say(f"{name}: {progress.stopped}; {left} units are left for the same command.")

        yield told


def progress_words(progress: RunProgress) -> list[str]:
    """What is worth saying of a run beside how many units are finished."""
    words = [f"{progress.failed} failed", f"{progress.running} running"]
    if progress.rate is not None:
        words.append(f"{progress.rate:.3g} a minute")
    if progress.left is not None and progress.done < progress.units:
        words.append(f"{_clock(progress.left)} left")
    if progress.cost_usd is not None:
        words.append(f"${progress.cost_usd:.2f}")
    return words


def _clock(time: timedelta) -> str:
    minutes, seconds = divmod(round(time.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"


def _bars(columns: Sequence[ProgressColumn]) -> Progress:
    """Bars on a terminal; nothing at all elsewhere."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
