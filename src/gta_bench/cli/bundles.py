"""Bundles of runs: made for a leaderboard, and checked for one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gta_bench.cli.output import say
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.leaderboard.bundle import (
    Refused,
    gather,
    listed,
    make_key,
    pack_bundle,
    read_key,
    run_digest,
    sign_bundle,
)
from gta_bench.leaderboard.checks import read_judged
from gta_bench.leaderboard.submission import EntryLabel, ScoredRun, entry_of
from gta_bench.leaderboard.verification import (
    Checked,
    LoadDataset,
    check_bundle,
    check_contents,
)
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.files import Deliverable
from gta_bench.records.leaderboard import BundleCheck, BundleFinding, Entry
from gta_bench.records.run import DatasetName
from gta_bench.records.units import WorkflowUnit
from gta_bench.redaction import Redactor
from gta_bench.runs.directory import (
    log_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.logs import data_of_logs, read_units
from gta_bench.settings import Settings, read_secrets

KEY_NAME = "leaderboard-key.pem"
# What a submitter can do about a finding.
AGAIN = "Run or import it again with this version, into a new folder."
NEXT: Mapping[BundleCheck, str] = {
    "dataset": "Name the dataset of the run by --data.",
    "scores": "Score it again: `gta score RUN`.",
    "judge": "Judge it with this version: `gta score RUN --judge MODEL`, then choose by --judge.",
}


def make_bundle(
    runs: Sequence[Path],
    out: Path,
    key: Path | None,
    label: EntryLabel,
    judge: str | None,
    settings: Settings,
    data: str | None = None,
) -> None:
    """Pack the runs, after everything that can be wrong with them has been looked at."""
    if out.exists():
        raise UsageError(f"{out} exists already; name another --out.")
    scored = [_scored(run) for run in runs]
    entry_of(scored, judge=judge, label=label)
    dataset = loader(data or _data_of(runs[0]), settings)(scored[0].manifest.spec.dataset)
    signing = _key(key or Path(click.get_app_dir("gta-bench")) / KEY_NAME)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        gather(runs, folder)
        _refuse_secrets(folder, settings)
        digest = run_digest(listed(folder))
        entry = entry_of(scored, judge=judge, label=label, run_digest=digest)
        artefacts = [file for run in runs for file in _artefacts(run)]
        bundle = sign_bundle(folder, entry, scored[0].manifest, artefacts, signing)
        thresholds = thresholds_of(settings)
        _refuse(check_contents(bundle, load=lambda _: dataset, thresholds=thresholds))
        try:
            pack_bundle(folder, out)
        except Refused as exc:
            raise UsageError(f"The bundle cannot be packed: {exc}.") from exc
    say(f"{out}: {entry.id}, {out.stat().st_size / 1_000_000:.1f} MB.")
    say(f"Next: gta leaderboard check {out}")


def _data_of(run: Path) -> str | None:
    """The dataset that the run was made with, where it still lies there."""
    found = data_of_logs(log_folder(run))
    return found if found is not None and Path(found).exists() else None


def _refuse(findings: Sequence[BundleFinding]) -> None:
    """No bundle is made that its check would refuse."""
    if findings:
        # What only another run helps against is said first.
        first, more = min(findings, key=lambda one: one.check in NEXT), len(findings) - 1
        others = f" (and {more} more)" if more else ""
        raise UsageError(
            f"`gta leaderboard check` would refuse the bundle, so none was made: {first.check}: "
            f"{first.message}{others}. {NEXT.get(first.check, AGAIN)}"
        )


def check_bundles(
    files: Sequence[Path], data: str | None, settings: Settings, *, quiet: bool
) -> tuple[tuple[BundleFinding, ...], tuple[Entry, ...]]:
    """What is wrong with the bundles, and the entries of those that could be read."""
    thresholds, load = thresholds_of(settings), loader(data, settings)
    findings: list[BundleFinding] = []
    entries = []
    for file in files:
        with TemporaryDirectory() as folder:
            checked = check_bundle(file, Path(folder), load=load, thresholds=thresholds)
        findings += checked.findings
        if checked.entry is not None:
            entries.append(checked.entry)
        if not quiet:
            _tell(file, checked)
    return tuple(findings), tuple(entries)


def thresholds_of(settings: Settings) -> Thresholds:
    """From when a leaf and a task succeed."""
    return Thresholds(settings.judge.leaf_threshold, settings.judge.root_threshold)


def loader(data: str | None, settings: Settings) -> LoadDataset:
    """Loads the dataset of a bundle from `--data`, or from where the settings have it."""

    def load(name: DatasetName) -> Dataset:
        if name == "atomic":
            return load_atomic(dataset_root(data or settings.data.atomic))
        return load_workflow(dataset_root(data or settings.data.workflow))

    return load


def _tell(file: Path, checked: Checked) -> None:
    for finding in checked.findings:
        click.echo(f"{click.style(finding.check, fg='yellow', bold=True)} {finding.message}")
    by = f"signed by {checked.signer}" if checked.signer else "no signature that holds"
    verdict = "refused" if checked.findings else "scores follow from its logs"
    entry = checked.entry
    stands = "" if entry is None else f" ({', '.join([entry.status, *entry.marks])})"
    say(f"{file}: {by}; {verdict}{'' if checked.findings else stands}.")


def _scored(run: Path) -> ScoredRun:
    manifest = read_manifest(run)
    if manifest.spec.mode != "workflow":
        return ScoredRun(run.name, manifest, read_scores(run))
    return ScoredRun(run.name, manifest, read_workflow_scores(run), read_judged(run))


def _key(file: Path) -> Ed25519PrivateKey:
    if file.exists():
        return read_key(file)
    say(f"A new key to sign with: {file}. Keep it: it is how your bundles are known to be yours.")
    return make_key(file)


def _artefacts(run: Path) -> list[Deliverable]:
    """The deliverables by digest; their paths begin with the task."""
    manifest = read_manifest(run)
    if manifest.spec.mode != "workflow":
        return []
    units = read_units(
        log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit
    ).units
    return [
        file.model_copy(update={"path": f"{unit.task.id}/{file.path}"})
        for unit in units
        for file in unit.deliverables
    ]


def _refuse_secrets(folder: Path, settings: Settings) -> None:
    """A key that stands in a log, as in those of earlier versions, must not be handed out."""
    redactor = Redactor(read_secrets(settings))
    for file in sorted(folder.rglob("*.json*")):
        name = redactor.finds(file.read_bytes())
        if name is not None:
            raise UsageError(
                f"{file.relative_to(folder)} would hold the value of {name}; nothing was made. "
                "Run again with a key that is not part of messages."
            )
