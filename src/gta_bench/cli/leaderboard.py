"""`gta leaderboard`: check entries for numbers that cannot be, and build the static site."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import click

from gta_bench.cli.needs import needs_report_extra
from gta_bench.cli.options import Command, json_option
from gta_bench.cli.output import say, write_json
from gta_bench.metrics.consistency import check_entry
from gta_bench.records.leaderboard import Entry, EntryFinding
from gta_bench.reports.leaderboard.entries import published, read_entries, without_doubles


def files_argument(command: Command) -> Command:
    """Files of entries, on every subcommand."""
    return click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))(command)


@click.group()
def leaderboard() -> None:
    """Check leaderboard entries and build the site from them."""


@leaderboard.command()
@files_argument
@json_option
@click.pass_context
def check(context: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Find numbers that cannot be scores of GTA; exit 1 if there are any.

    FILES hold one entry or a list of entries each; without any, the published rows are checked.
    """
    entries = read_entries(map(Path, files)) if files else published()
    findings = [finding for entry in without_doubles(entries) for finding in check_entry(entry)]
    if as_json:
        write_json([finding.model_dump(mode="json") for finding in findings])
    else:
        _write_findings(entries, findings)
    context.exit(1 if findings else 0)


@leaderboard.command()
@files_argument
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder of the site.")
def build(files: tuple[str, ...], out: str) -> None:
    """Make the static site of the published rows, and of the entries in FILES."""
    needs_report_extra()
    from gta_bench.reports.leaderboard.site import build_site

    entries = without_doubles((*published(), *read_entries(map(Path, files))))
    build_site(entries, Path(out))
    say(f"{len(entries)} rows; open {Path(out) / 'index.html'}")


def _write_findings(entries: Sequence[Entry], findings: Sequence[EntryFinding]) -> None:
    def fact(finding: EntryFinding) -> tuple[str, str]:
        return finding.check, finding.message

    facts = 0
    for (name, message), same in groupby(sorted(findings, key=fact), key=fact):
        facts += 1
        click.echo(f"{click.style(name, fg='yellow', bold=True)} {message}")
        for finding in same:
            click.echo(f"  {finding.entry}")
    rows = len({finding.entry for finding in findings})
    say(f"{len(entries)} rows checked: {rows} rows flagged, {facts} facts.")
