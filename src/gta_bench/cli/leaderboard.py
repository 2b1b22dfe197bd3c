"""`gta leaderboard`: submit runs, check entries and bundles, build the static site."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gta_bench.cli.options import (
    FILE,
    FOLDER,
    NEW_FILE,
    NEW_FOLDER,
    command_settings,
    data_option,
    json_option,
)
from gta_bench.cli.output import say, write_json
from gta_bench.errors import UsageError, format_count
from gta_bench.leaderboard.entries import (
    check_entry,
    check_unique_ids,
    is_bundle,
    raise_tiers,
    read_entries,
    read_published_entries,
)
from gta_bench.packages import require_packages
from gta_bench.records.leaderboard import BundleFinding, Entry, EntryFinding, Verification

if TYPE_CHECKING:
    # Needs scipy and cryptography, which the core does not install.
    from gta_bench.leaderboard.verification import Checked

files_argument = click.argument("files", nargs=-1, type=FILE)


@click.group()
def leaderboard() -> None:
    """Submit runs, check leaderboard entries and bundles, build the site."""


@leaderboard.command()
@click.argument("runs", nargs=-1, required=True, type=FOLDER)
@click.option("--out", required=True, type=NEW_FILE, help="A new zip file.")
@click.option(
    "--key",
    type=NEW_FILE,
    show_default="one in your configuration folder",
    help="Private key (Ed25519, PEM) to sign with; created if it does not exist.",
)
@click.option("--system", help="Name of the system on the board.")
@click.option(
    "--group", default="", show_default="none", help="Kind of system, such as `open-source`."
)
@click.option("--judge", help="The judge whose verdicts count, if several have scored the run.")
@data_option
def submit(
    runs: tuple[Path, ...],
    out: Path,
    key: Path | None,
    system: str | None,
    group: str,
    judge: str | None,
    folder: str | None,
) -> None:
    """Make a signed bundle of a complete run: an entry, and what is needed to check it.

    A step run and an end-to-end run of GTA-Atomic by the same system make one entry: name both.
    Makes no bundle that `gta leaderboard check` would reject. That check needs the dataset: the one
    of --data, or the one that the run was made with.
    """
    require_packages("gta leaderboard submit", "scipy", "cryptography", extra="report")
    from gta_bench.cli.bundles import make_bundle
    from gta_bench.leaderboard.submission import EntryLabel

    make_bundle(runs, out, key, EntryLabel(system, group), judge, command_settings(), folder)


@leaderboard.command()
@files_argument
@click.option(
    "--board",
    type=FOLDER,
    help="Folder of what a board has already; a bundle with one of its ids or runs is rejected.",
)
@click.option(
    "--markdown", type=NEW_FILE, help="Write the findings of bundles for a pull-request comment."
)
@data_option
@json_option
def check(
    files: tuple[Path, ...],
    board: Path | None,
    markdown: Path | None,
    folder: str | None,
    as_json: bool,
) -> None:
    """Find numbers that cannot be scores of GTA; exits with 1 if there are any.

    FILES contain an entry or a list of entries, or are bundles of `gta leaderboard submit`. Without
    FILES, the published rows are checked. The scores of a bundle are computed again from its logs
    and verdicts, with the dataset that --data names. An entry of a tier above self-reported is
    refused unless its bundle is among FILES or on the board.
    """
    bundles = [file for file in files if is_bundle(file)]
    others = [file for file in files if file not in bundles]
    refused: tuple[BundleFinding, ...] = ()
    submitted: tuple[Entry, ...] = ()
    accepted: tuple[Entry, ...] = ()
    if bundles:
        require_packages("gta leaderboard check", "scipy", "cryptography", extra="report")
        from gta_bench.cli.bundles import check_bundles

        checked = check_bundles(bundles, folder, command_settings(), quiet=as_json, board=board)
        refused = tuple(finding for one in checked for finding in one.findings)
        submitted = tuple(one.entry for one in checked if one.entry is not None)
        accepted = tuple(one.entry for one in checked if one.entry is not None and not one.findings)
        if markdown is not None:
            _write_comment(markdown, bundles, checked)
    stated = read_entries(others) if files else read_published_entries()
    entries = (*stated, *submitted)
    on_board: tuple[Entry, ...] = ()
    if board is None:
        check_unique_ids(raise_tiers(accepted, stated))
    elif others:
        require_packages("gta leaderboard check --board", "scipy", "cryptography", extra="report")
        from gta_bench.cli.bundles import read_accepted_bundles

        on_board = tuple(read_accepted_bundles(board))
        raise_tiers([*accepted, *on_board], stated)
    findings = [finding for entry in entries for finding in check_entry(entry)]
    if as_json:
        write_json([finding.model_dump(mode="json") for finding in (*refused, *findings)])
    elif stated or findings or not refused:
        _write_findings(entries, findings)
        known = {one.id for one in (*submitted, *on_board)}
        if alone := [one for one in stated if files and one.id not in known]:
            say(
                f"{format_count(len(alone), 'row')} without a bundle here: whether the scores "
                "follow from logs was not checked."
            )
    raise click.exceptions.Exit(1 if findings or refused else 0)


@leaderboard.command()
@click.argument("bundle", type=FILE)
@click.option("--rejudge", type=click.IntRange(0), default=0, help="Number of leaves to rejudge.")
@click.option("--rerun", type=click.IntRange(0), default=0, help="Number of tasks to run again.")
@click.option("--judge", help="Model of the entry's judge.")
@click.option("--files", type=FOLDER, help="The submitter's run folder, for its deliverables.")
@click.option("--out", type=NEW_FILE, help="Write the entry to this file, with its new tier.")
@data_option
@json_option
def verify(
    bundle: Path,
    rejudge: int,
    rerun: int,
    judge: str | None,
    files: Path | None,
    out: Path | None,
    folder: str | None,
    as_json: bool,
) -> None:
    """Repeat a random part of a bundle to find inflated scores; exits with 1 if it finds any.

    The seed is drawn now, so nobody could know it when the bundle was made. Needs the dataset, and
    the keys of the models that are called.
    """
    require_packages("gta leaderboard verify", "scipy", "cryptography", extra="report")
    from gta_bench.cli.bundles import Wanted, verify_bundle

    wanted = Wanted(rejudge=rejudge, rerun=rerun, judge=judge, files=files, data=folder)
    entry, result = verify_bundle(bundle, wanted, command_settings())
    if out is not None:
        out.write_text(entry.model_dump_json(indent=2) + "\n", encoding="utf-8", newline="\n")
    if as_json:
        write_json(result.model_dump(mode="json"))
    else:
        _write_verification(result)
    raise click.exceptions.Exit(1 if result.disagrees else 0)


@leaderboard.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--out", required=True, type=NEW_FOLDER, help="Folder for the site.")
@click.option("--submit-to", help="Web address of the repository that takes submissions.")
@data_option
def build(files: tuple[Path, ...], out: Path, submit_to: str | None, folder: str | None) -> None:
    """Build the static site from the published rows and the submissions in FILES.

    FILES contain an entry or a list of entries, are bundles of `gta leaderboard submit`, or are
    folders of both. Bundles are checked again, with the dataset that --data names. An entry that
    `gta leaderboard verify --out` wrote replaces that of its bundle.
    """
    require_packages("gta leaderboard build", "scipy", extra="report")
    from gta_bench.web.site import build_site

    if submit_to is not None and not submit_to.startswith(("https://", "http://")):
        raise UsageError(f"--submit-to is {submit_to!r}; it must begin with https://.")
    submitted: tuple[Entry, ...] = ()
    if files:
        require_packages("gta leaderboard build", "cryptography", extra="report")
        from gta_bench.cli.bundles import read_submissions

        submitted = read_submissions(files, folder, command_settings())
    entries = check_unique_ids((*read_published_entries(), *submitted))
    build_site(entries, out, submit_to=submit_to)
    say(f"Wrote {format_count(len(entries), 'row')}. Open {out / 'index.html'}")


def _write_comment(file: Path, bundles: Sequence[Path], checked: "Sequence[Checked]") -> None:
    from gta_bench.leaderboard.comments import SubmissionReport, format_submissions

    reports = []
    for bundle, one in zip(bundles, checked, strict=True):
        problems: list[tuple[str, str]] = [(own.check, own.message) for own in one.findings]
        if one.entry is not None:
            problems += [(own.check, own.message) for own in check_entry(one.entry)]
        reports.append(SubmissionReport(bundle.name, one.entry, one.signer, tuple(problems)))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(format_submissions(reports), encoding="utf-8", newline="\n")


def _write_verification(result: Verification) -> None:
    for one in result.repetitions:
        test = one.test
        click.echo(
            f"{one.kind}{', step by step' if one.mode == 'step' else ''}: "
            f"{format_count(test.n, 'outcome')} of {format_count(test.tasks, 'task')}, "
            f"{100 * test.agreement:.1f} % agree{_show_kappa(test.kappa)}; "
            f"stated better {test.better}, worse {test.worse} "
            f"(p {test.p_value:.4f}); power {test.power:.2f} against {100 * test.effect:.0f} %"
        )
        if not test.disagrees and not test.supports:
            say(
                f"Too few to support a tier: the power is {test.power:.2f} and must be 0.80; "
                "repeat more."
            )
    found = "states more than repeating gives" if result.disagrees else "agrees"
    say(f"{result.entry}: {found}; {result.tier} (seed {result.seed}).")


def _show_kappa(kappa: float | None) -> str:
    return "" if kappa is None else f", kappa {kappa:.2f}"


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
    say(
        f"{format_count(len(entries), 'row')} checked: {format_count(rows, 'row')} flagged, "
        f"{format_count(facts, 'fact')}."
    )
