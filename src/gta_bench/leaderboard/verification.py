"""A submitted bundle checked: everything that it claims is computed again from its logs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gta_bench.datasets.digest import dataset_digest, task_digests
from gta_bench.datasets.model import Dataset
from gta_bench.errors import GtaError, UsageError
from gta_bench.leaderboard.bundle import OpenBundle, Refused, open_bundle
from gta_bench.leaderboard.checks import (
    attempt_findings,
    judge_findings,
    log_findings,
    read_judged,
    sample_findings,
    unit_findings,
)
from gta_bench.leaderboard.signing import fingerprint
from gta_bench.leaderboard.submission import EntryLabel, ScoredRun, entry_of
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.table import label as label_of
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.leaderboard import BundleFinding, Entry
from gta_bench.records.run import DatasetName, RunManifest
from gta_bench.records.scores import RunScores
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.runs.directory import (
    log_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.logs import read_said, read_units, whole_samples
from gta_bench.runs.verdicts import read_judges, read_verdicts
from gta_bench.similarity.catalog import MODELS, load_similarity

# Similarities are sums of floats, which another machine may add up a little differently.
TOLERANCE: Final = 0.01
LoadDataset = Callable[[DatasetName], Dataset]
Units = Sequence[AtomicUnit] | Sequence[WorkflowUnit]


class Checked(NamedTuple):
    """What became of a bundle; without an entry it was refused before one could be read."""

    entry: Entry | None
    signer: str
    findings: tuple[BundleFinding, ...]


class Again(NamedTuple):
    """A run of a bundle with its units, as scored again."""

    run: ScoredRun
    units: Units


def check_bundle(file: Path, folder: Path, *, load: LoadDataset, thresholds: Thresholds) -> Checked:
    """Everything that is wrong with a bundle. `folder` is empty and takes its files."""
    try:
        bundle = open_bundle(file, folder)
    except Refused as exc:
        return Checked(None, "", (BundleFinding(check=exc.check, message=exc.message),))
    found = check_contents(bundle, load=load, thresholds=thresholds)
    return Checked(bundle.entry, fingerprint(bundle.signature), found)


def check_contents(
    bundle: OpenBundle, *, load: LoadDataset, thresholds: Thresholds
) -> tuple[BundleFinding, ...]:
    """Everything that is wrong with an open bundle."""
    try:
        return tuple(_findings(bundle, load, thresholds))
    except GtaError as exc:
        return (BundleFinding(check="entry", message=str(exc).rstrip(".")),)
    except (ValueError, KeyError) as exc:  # what readers of logs say of something else
        reason = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        return (BundleFinding(check="archive", message=f"a log cannot be read: {reason}"),)


def _findings(
    bundle: OpenBundle, load: LoadDataset, thresholds: Thresholds
) -> Iterator[BundleFinding]:
    if not bundle.runs:
        raise UsageError("there is no run in it")
    dataset = load(bundle.manifest.dataset)
    here = dataset_digest(dataset)
    manifests = [read_manifest(run) for run in bundle.runs]
    stated = {bundle.manifest.dataset_digest, bundle.entry.dataset_digest}
    for digest in sorted({str(one) for one in stated | {one.dataset_digest for one in manifests}}):
        if digest != here:
            yield BundleFinding(
                check="dataset",
                message=f"made on dataset {digest[:16]}, the one here is {here[:16]}",
            )
            return
    again = [
        score_again(run, one, thresholds) for run, one in zip(bundle.runs, manifests, strict=True)
    ]
    for one in again:
        yield from _task_findings(one, dataset)
        if bundle.entry.judge is not None:
            yield from judge_findings(one.run.judged.get(bundle.entry.judge), bundle.entry.judge)
    yield from _score_findings(bundle, again)
    for run, one in zip(bundle.runs, again, strict=True):
        spoken = []
        for sample in whole_samples(log_folder(run)):
            spoken.append(read_said(sample))
            yield from sample_findings(sample, one.run.manifest)
        yield from log_findings(run, one.run.manifest, one.units, spoken)
        yield from attempt_findings(run, one.run.manifest, one.units)
        said = {(told.task, told.epoch): told for told in spoken}
        for unit in one.units:
            yield from unit_findings(unit, said.get((unit.task.id, unit.epoch)))


def score_again(run: Path, manifest: RunManifest, thresholds: Thresholds) -> Again:
    """Score a run of the bundle from its logs and verdicts."""
    if manifest.spec.mode == "workflow":
        found = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, WorkflowUnit)
        scores = score_workflow(
            found.units,
            read_verdicts(run).values(),
            thresholds=thresholds,
            not_run=found.not_run,
            asked=[entry.name for entry in read_judges(run).judges],
        )
        judged = read_judged(run)
        return Again(ScoredRun(f"run {run.name}", manifest, scores, judged), found.units)
    atomic = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, AtomicUnit)
    stated = read_scores(run).similarity
    name = next((name for name in MODELS if stated.startswith(name)), None)
    if name is None:
        raise UsageError(f"its similarity {stated!r} is none of {', '.join(MODELS)}")
    similar = load_similarity(name)
    rescored = score_run(
        atomic.units,
        manifest.spec.mode,
        similarity=similar.measure,
        similarity_name=similar.name,
        comparable=similar.comparable,
        not_run=atomic.not_run,
    )
    return Again(ScoredRun(f"run {run.name}", manifest, rescored), atomic.units)


def _task_findings(one: Again, dataset: Dataset) -> Iterator[BundleFinding]:
    """The tasks are all of the dataset's, and as the dataset has them."""
    missing = sorted({*dataset.tasks} ^ {*one.run.manifest.spec.tasks})
    if missing:
        yield BundleFinding(
            check="tasks", message=f"task {missing[0]} is not both in the run and in the dataset"
        )
    for unit in one.units:
        if unit.task.id not in dataset.tasks:
            continue
        if unit.task != dataset.tasks[unit.task.id]:
            yield BundleFinding(
                check="tasks", message=f"task {unit.task.id} is not what the dataset has"
            )
        elif unit.digests is None or not unit.digests.agrees(task_digests(dataset, unit.task.id)):
            yield BundleFinding(
                check="tasks", message=f"task {unit.task.id} was run with other files or tools"
            )


def _score_findings(bundle: OpenBundle, again: Sequence[Again]) -> Iterator[BundleFinding]:
    """The stored scores and the entry follow from the logs."""
    for run, one in zip(bundle.runs, again, strict=True):
        yield from _stored(run, one.run.scores)
    entry = bundle.entry
    label = EntryLabel(entry.system, entry.group)
    runs = [one.run for one in again]
    rebuilt = entry_of(runs, judge=entry.judge, label=label, run_digest=bundle.manifest.run_digest)
    for metric in sorted({*entry.scores, *rebuilt.scores}):
        stated, true = entry.scores.get(metric), rebuilt.scores.get(metric)
        if stated is None or true is None:
            said = "is missing" if stated is None else "does not come from these runs"
            yield BundleFinding(check="scores", message=f"{label_of(metric)} {said}")
        elif (stated.k, stated.n) != (true.k, true.n) or abs(stated.value - true.value) > TOLERANCE:
            yield BundleFinding(
                check="scores",
                message=f"{label_of(metric)} is {stated.value:.2f} in the entry and "
                f"{true.value:.2f} by the logs",
            )
    # Numbers of an earlier scoring version hold where the present one gives the same.
    for field in sorted(Entry.model_fields.keys() - {"scores", "scoring_version"}):
        if getattr(entry, field) != getattr(rebuilt, field):
            yield BundleFinding(
                check="entry", message=f"`{field}` of the entry is not what the runs say"
            )


def _stored(run: Path, scores: RunScores | WorkflowScores) -> Iterator[BundleFinding]:
    """The headline numbers of `scores.json`."""
    if isinstance(scores, WorkflowScores):
        kept = {judge.judge: judge.strict for judge in read_workflow_scores(run).judges}
        differ = kept != {judge.judge: judge.strict for judge in scores.judges}
    else:
        stored = read_scores(run).strict.model_dump()
        differ = any(not _near(stored[name], value) for name, value in scores.strict)
    if differ:
        yield BundleFinding(
            check="scores", message=f"scores.json of run {run.name} does not follow from its logs"
        )


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOLERANCE
