"""`gta leaderboard`: submit runs, check entries and bundles, build the static site."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from zipfile import is_zipfile

import click

from gta_bench.cli.options import CommandFunction, config_path, data_option, json_option
from gta_bench.cli.output import say, write_json
from gta_bench.errors import counted
from gta_bench.leaderboard.entries import check_entry, published, read_entries, without_doubles
from gta_bench.packages import require_packages
from gta_bench.records.leaderboard import BundleFinding, Entry, EntryFinding, Verification
from gta_bench.settings import read_settings


def files_argument(command: CommandFunction) -> CommandFunction:
    """Files of entries, on every subcommand."""
    return click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))(command)


@click.group()
def leaderboard() -> None:
    """Submit runs, check leaderboard entries and bundles, build the site."""


@leaderboard.command()
@click.argument(
    "runs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="A new zip file."
)
@click.option(
    "--key",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Private key (Ed25519, PEM) to sign with, made where it does not exist; by default one "
    "in your configuration folder.",
)
@click.option("--system", help="The system's name on the board.")
@click.option("--group", default="", help="Its kind, such as `open-source`.")
@click.option("--judge", help="Whose verdicts count, where several judges have seen the run.")
@data_option
@click.pass_obj
def submit(
    config_file: str | None,
    runs: tuple[Path, ...],
    out: Path,
    key: Path | None,
    system: str | None,
    group: str,
    judge: str | None,
    folder: str | None,
) -> None:
    """Make a signed bundle of a complete run: an entry, and what is needed to check it.

    A step and an end-to-end run of GTA-Atomic by the same system are one entry: name both. What
    `gta leaderboard check` would refuse is not made; it needs the dataset: the one of --data, else
    the one that the run was made with.
    """
    require_packages("gta leaderboard submit", "scipy", "cryptography", extra="report")
    from gta_bench.cli.bundles import make_bundle
    from gta_bench.leaderboard.submission import EntryLabel

    settings = read_settings(config_path(config_file)).settings
    make_bundle(runs, out, key, EntryLabel(system, group), judge, settings, folder)


@leaderboard.command()
@files_argument
@data_option
@json_option
@click.pass_obj
@click.pass_context
def check(
    context: click.Context,
    config_file: str | None,
    files: tuple[str, ...],
    folder: str | None,
    as_json: bool,
) -> None:
    """Find numbers that cannot be scores of GTA; exit 1 if there are any.

    FILES hold one entry or a list of entries each, or are bundles of `gta leaderboard submit`;
    without any, the published rows are checked. A bundle's scores are computed again from its
    logs and verdicts, with the dataset that --data names.
    """
    bundles = [Path(file) for file in files if is_zipfile(file)]
    others = [Path(file) for file in files if Path(file) not in bundles]
    refused: tuple[BundleFinding, ...] = ()
    submitted: tuple[Entry, ...] = ()
    if bundles:
        require_packages("gta leaderboard check", "scipy", "cryptography", extra="report")
        from gta_bench.cli.bundles import check_bundles

        settings = read_settings(config_path(config_file)).settings
        refused, submitted = check_bundles(bundles, folder, settings, quiet=as_json)
    entries = (*(read_entries(others) if files else published()), *submitted)
    findings = [finding for entry in without_doubles(entries) for finding in check_entry(entry)]
    if as_json:
        write_json([finding.model_dump(mode="json") for finding in (*refused, *findings)])
    else:
        _write_findings(entries, findings)
    context.exit(1 if findings or refused else 0)


@leaderboard.command()
@click.argument("bundle", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rejudge", type=click.IntRange(0), default=0, help="Leaves to judge again.")
@click.option("--rerun", type=click.IntRange(0), default=0, help="Tasks to run again.")
@click.option("--judge", help="The model of the entry's judge.")
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The submitter's run folder, for its deliverables.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the entry with the tier that was found.",
)
@data_option
@json_option
@click.pass_obj
@click.pass_context
def verify(
    context: click.Context,
    config_file: str | None,
    bundle: Path,
    rejudge: int,
    rerun: int,
    judge: str | None,
    files: Path | None,
    out: Path | None,
    folder: str | None,
    as_json: bool,
) -> None:
    """Repeat a random part of a bundle and test whether it states too much; exit 1 if it does.

    The seed is drawn now, so that nobody could know it when the bundle was made. Needs the dataset,
    and the keys of the models that are asked.
    """
    require_packages("gta leaderboard verify", "scipy", "cryptography", extra="report")
    from gta_bench.cli.verifying import Wanted, verify_bundle

    settings = read_settings(config_path(config_file)).settings
    wanted = Wanted(rejudge=rejudge, rerun=rerun, judge=judge, files=files, data=folder)
    entry, result = verify_bundle(bundle, wanted, settings)
    if out is not None:
        out.write_text(entry.model_dump_json(indent=2) + "\n", encoding="utf-8")
    if as_json:
        write_json(result.model_dump(mode="json"))
    else:
        _write_verification(result)
    context.exit(1 if result.disagrees else 0)


@leaderboard.command()
@files_argument
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder of the site.")
def build(files: tuple[str, ...], out: str) -> None:
    """Make the static site of the published rows, and of the entries in FILES."""
    require_packages("gta leaderboard build", "scipy", extra="report")
    from gta_bench.web.site import build_site

    entries = without_doubles((*published(), *read_entries(map(Path, files))))
    build_site(entries, Path(out))
    say(f"{counted(len(entries), 'row')}; open {Path(out) / 'index.html'}")


def _write_verification(result: Verification) -> None:
    for one in result.repetitions:
        test = one.test
        click.echo(
            f"{one.kind}: {counted(test.n, 'outcome')} of {counted(test.tasks, 'task')}, "
            f"{100 * test.agreement:.1f} % agree; stated better {test.better}, worse {test.worse} "
            f"(p {test.p_value:.4f}); power {test.power:.2f} against {100 * test.effect:.0f} %"
        )
        if not test.disagrees and not test.supports:
            say(f"Too few to support a tier: power {test.power:.2f}, 0.80 is needed; draw more.")
    found = "states more than repeating gives" if result.disagrees else "agrees"
    say(f"{result.entry}: {found}; {result.tier} (seed {result.seed}).")


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
        f"{counted(len(entries), 'row')} checked: {counted(rows, 'row')} flagged, "
        f"{counted(facts, 'fact')}."
    )
