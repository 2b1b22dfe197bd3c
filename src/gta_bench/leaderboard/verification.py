"""Verify a submitted bundle by computing all of its claims again from its logs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from gta_bench.datasets.digest import dataset_digest, task_digests
from gta_bench.datasets.model import Dataset
from gta_bench.errors import GtaError, UsageError
from gta_bench.leaderboard.bundle import OpenBundle, Refused, fingerprint, open_bundle
from gta_bench.leaderboard.checks import (
    attempt_problems,
    judge_problems,
    log_problems,
    read_judge_records,
    sample_problems,
    unit_findings,
)
from gta_bench.leaderboard.entries import find_future
from gta_bench.leaderboard.submission import EntryLabel, ScoredRun, build_entry
from gta_bench.metrics.run_scores import score_run
from gta_bench.metrics.table import label as label_of
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.leaderboard import BundleCheck, BundleFinding, Entry
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
from gta_bench.runs.logs import read_conversation, read_units, read_whole_samples
from gta_bench.runs.verdicts import read_judges, read_verdicts
from gta_bench.similarity.catalog import MODELS, load_similarity

# Similarities are sums of floats, which may differ slightly between machines.
TOLERANCE: Final = 0.01
LoadDataset = Callable[[DatasetName], Dataset]
Units = Sequence[AtomicUnit] | Sequence[WorkflowUnit]


class Checked(NamedTuple):
    """The result of a check; a bundle without an entry was refused before it could be read."""

    entry: Entry | None
    signer: str
    findings: tuple[BundleFinding, ...]


class Again(NamedTuple):
    """A run of a bundle with its units, scored again."""

    run: ScoredRun
    units: Units


def check_bundle(
    file: Path,
    folder: Path,
    *,
    load: LoadDataset,
    thresholds: Thresholds,
    now: datetime | None = None,
) -> Checked:
    """Return everything that is wrong with a bundle, which is unpacked into an empty folder.

    `now` is the current time.
    """
    try:
        bundle = open_bundle(file, folder)
    except Refused as exc:
        return Checked(None, "", (_finding(exc.check, exc.message),))
    found = check_contents(bundle, load=load, thresholds=thresholds)
    if problem := find_future(bundle.entry, now):
        found = (_finding("entry", problem), *found)
    return Checked(bundle.entry, fingerprint(bundle.signature), found)


def check_contents(
    bundle: OpenBundle, *, load: LoadDataset, thresholds: Thresholds
) -> tuple[BundleFinding, ...]:
    """Return everything that is wrong with an unpacked bundle."""
    try:
        return tuple(_findings(bundle, load, thresholds))
    except GtaError as exc:
        return (_finding("entry", str(exc).rstrip(".")),)
    except (ValueError, KeyError) as exc:  # raised by readers of logs for other files
        reason = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        return (_finding("archive", f"a log cannot be read: {reason}"),)


def _findings(
    bundle: OpenBundle, load: LoadDataset, thresholds: Thresholds
) -> Iterator[BundleFinding]:
    if not bundle.runs:
        raise UsageError("it has no run")
    dataset = load(bundle.manifest.dataset)
    here = dataset_digest(dataset)
    manifests = [read_manifest(run) for run in bundle.runs]
    stated = {bundle.manifest.dataset_digest, bundle.entry.dataset_digest}
    for digest in sorted({str(one) for one in stated | {one.dataset_digest for one in manifests}}):
        if digest != here:
            yield _finding("dataset", f"it used dataset {digest[:16]}, the one here is {here[:16]}")
            return
    again = [
        score_again(run, one, thresholds) for run, one in zip(bundle.runs, manifests, strict=True)
    ]
    judge = bundle.entry.judge
    for one in again:
        yield from (_finding("tasks", problem) for problem in _task_problems(one, dataset))
        if judge is not None:
            problems = judge_problems(one.run.judged.get(judge), judge)
            yield from (_finding("judge", problem) for problem in problems)
    yield from _score_findings(bundle, again)
    for run, one in zip(bundle.runs, again, strict=True):
        yield from _run_findings(run, one.run.manifest, one.units)


def _run_findings(run: Path, manifest: RunManifest, units: Units) -> Iterator[BundleFinding]:
    conversations = []
    for sample in read_whole_samples(log_folder(run)):
        conversations.append(read_conversation(sample))
        for problem in sample_problems(sample, manifest):
            yield _finding("logs", f"task {sample.id}: {problem}")
    for problem in log_problems(run, manifest, units, conversations):
        yield _finding("logs", problem)
    for problem in attempt_problems(run, manifest, units):
        yield _finding("attempts", problem)
    by_unit = {(one.task, one.epoch): one for one in conversations}
    for unit in units:
        yield from unit_findings(unit, by_unit.get((unit.task.id, unit.epoch)))


def _finding(check: BundleCheck, message: str) -> BundleFinding:
    return BundleFinding(check=check, message=message)


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
        judged = read_judge_records(run)
        return Again(ScoredRun(f"run {run.name}", manifest, scores, judged), found.units)
    atomic = read_units(log_folder(run), manifest.spec.tasks, manifest.spec.epochs, AtomicUnit)
    stated = read_scores(run).similarity
    name = next((name for name in MODELS if stated.startswith(name)), None)
    if name is None:
        raise UsageError(f"its similarity {stated!r} is not one of {', '.join(MODELS)}")
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


def _task_problems(one: Again, dataset: Dataset) -> Iterator[str]:
    """Yield where the tasks of a run differ from those of the dataset."""
    missing = sorted({*dataset.tasks} ^ {*one.run.manifest.spec.tasks})
    if missing:
        yield f"task {missing[0]} is not in both the run and the dataset"
    for unit in one.units:
        if unit.task.id not in dataset.tasks:
            continue
        if unit.task != dataset.tasks[unit.task.id]:
            yield f"task {unit.task.id} differs from the dataset"
        elif unit.digests is None or not unit.digests.agrees(task_digests(dataset, unit.task.id)):
            yield f"task {unit.task.id} was run with other files or tools"


def _score_findings(bundle: OpenBundle, again: Sequence[Again]) -> Iterator[BundleFinding]:
    """Yield where the stored scores or the entry do not follow from the logs."""
    for run, one in zip(bundle.runs, again, strict=True):
        if _differs(run, one.run.scores):
            message = f"scores.json of run {run.name} does not follow from its logs"
            yield _finding("scores", message)
    entry = bundle.entry
    label = EntryLabel(entry.system, entry.group)
    runs = [one.run for one in again]
    rebuilt = build_entry(
        runs, judge=entry.judge, label=label, run_digest=bundle.manifest.run_digest
    )
    for metric in sorted({*entry.scores, *rebuilt.scores}):
        name, stated, true = label_of(metric), entry.scores.get(metric), rebuilt.scores.get(metric)
        if stated is None or true is None:
            fact = "is missing" if stated is None else "does not come from these runs"
            yield _finding("scores", f"{name} {fact}")
        elif (stated.k, stated.n) != (true.k, true.n) or abs(stated.value - true.value) > TOLERANCE:
            values = f"{stated.value:.2f} in the entry and {true.value:.2f} in the logs"
            yield _finding("scores", f"{name} is {values}")
    # Bundles of earlier versions have no results by task.
    if entry.by_task is not None and not _agree(entry.by_task, rebuilt.by_task or {}):
        yield _finding("scores", "`by_task` of the entry does not follow from the logs")
    # An earlier scoring version is fine if the current one gives the same numbers.
    for field in sorted(Entry.model_fields.keys() - {"scores", "by_task", "scoring_version"}):
        if getattr(entry, field) != getattr(rebuilt, field):
            yield _finding("entry", f"`{field}` of the entry does not match the runs")


def _agree(stated: Mapping[str, float], true: Mapping[str, float]) -> bool:
    same = stated.keys() == true.keys()
    return same and all(abs(stated[task] - true[task]) <= TOLERANCE for task in true)


def _differs(run: Path, scores: RunScores | WorkflowScores) -> bool:
    """Return whether the strict scores in `scores.json` differ from these."""
    if isinstance(scores, WorkflowScores):
        stated = {judge.judge: judge.strict for judge in read_workflow_scores(run).judges}
        return stated != {judge.judge: judge.strict for judge in scores.judges}
    stored = read_scores(run).strict.model_dump()
    return any(
        (value is None) != (stored[name] is None)
        or abs((value or 0) - (stored[name] or 0)) > TOLERANCE
        for name, value in scores.strict
    )
