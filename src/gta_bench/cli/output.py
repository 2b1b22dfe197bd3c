"""How `gta` writes: data on stdout, words for people on stderr, bars while it works."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import click
from pydantic import JsonValue
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from gta_bench.datasets.download import Progress as ReportProgress
from gta_bench.records.finding import Severity

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


def say(text: str) -> None:
    """A word for people on stderr."""
    click.echo(text, err=True)


@contextmanager
def download_bar(name: str) -> Iterator[ReportProgress]:
    """A bar on stderr for one download; silent where stderr is not a terminal."""
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(name, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
