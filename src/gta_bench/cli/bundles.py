"""Bundles of runs for a leaderboard: make them, check them, and repeat a random part.

A check shows that a bundle is consistent. A consistent forgery is found by repeating tasks and
leaves that are drawn with a seed that did not exist when the bundle was made.
"""

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from shutil import copytree
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Literal

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from inspect_ai.model import Model

from gta_bench import api
from gta_bench.agents.generation import NAMED
from gta_bench.cli.output import say, unit_bar
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.installed import dataset_root
from gta_bench.datasets.model import Dataset
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import UsageError
from gta_bench.harnesses.delivery import store_task_inputs
from gta_bench.leaderboard.bundle import (
    Refused,
    gather,
    list_bundle_files,
    make_key,
    open_bundle,
    pack_bundle,
    read_key,
    run_digest,
    sign_bundle,
)
from gta_bench.leaderboard.checks import LOOPS, read_judge_records
from gta_bench.leaderboard.entries import (
    check_entry,
    is_bundle,
    raise_tiers,
    read_entries,
    read_published_entries,
)
from gta_bench.leaderboard.submission import EntryLabel, ScoredRun, build_entry
from gta_bench.leaderboard.verification import (
    Checked,
    LoadDataset,
    check_bundle,
    check_contents,
    score_again,
)
from gta_bench.metrics.table import ANS_ACC_I, ARG_ACC, INST_ACC, SUMM_ACC, TOOL_ACC
from gta_bench.metrics.workflow_scores import Thresholds
from gta_bench.records.files import Deliverable
from gta_bench.records.leaderboard import (
    BundleCheck,
    BundleFinding,
    Entry,
    Repetition,
    Tier,
    Verification,
)
from gta_bench.records.run import DatasetName, RunManifest, RunSpec
from gta_bench.records.scores import RunScores, StrictEndToEndCounts, StrictStepCounts
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.redaction import Redactor
from gta_bench.running.judge_run import judge_run, name_judge, open_judges, plan_judging
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import (
    LOGS,
    MANIFEST,
    log_folder,
    read_manifest,
    read_scores,
    read_workflow_scores,
)
from gta_bench.runs.logs import read_data_path, read_units
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.serving.choice import LOCAL
from gta_bench.settings import Settings, read_secrets
from gta_bench.statistics.inflation import Outcomes, find_inflation

KEY_NAME = "leaderboard-key.pem"
# What a submitter can do about a finding.
RUN_AGAIN = "Run or import it again with this version, into a new folder."
NEXT_STEPS: Mapping[BundleCheck, str] = {
    "dataset": "Name the dataset of the run with --data.",
    "scores": "Score it again: `gta score RUN`.",
    "judge": "Judge it with this version: `gta score RUN --judge MODEL`, then choose that judge "
    "with --judge.",
}
# A repetition must be able to find that this share of outcomes was turned into passes.
REJUDGE_EFFECT, RERUN_EFFECT = 0.1, 0.2
RIGHT = 0.5
# The tier that a repetition supports.
TIERS: Mapping[str, Tier] = {"re-judged": "re-judged", "re-run": "reproduced"}


def make_bundle(
    runs: Sequence[Path],
    out: Path,
    key: Path | None,
    label: EntryLabel,
    judge: str | None,
    settings: Settings,
    data: str | None = None,
) -> None:
    """Pack the runs as a signed bundle; raise UsageError if its check would reject it."""
    if out.exists():
        raise UsageError(f"{out} already exists; choose another --out.")
    scored = [_read_scored(run) for run in runs]
    build_entry(scored, judge=judge, label=label)
    dataset = _dataset_loader(data or _find_data(runs[0]), settings)(
        scored[0].manifest.spec.dataset
    )
    signing = _open_key(key or Path(click.get_app_dir("gta-bench")) / KEY_NAME)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        gather(runs, folder)
        _reject_secrets(folder, settings)
        digest = run_digest(list_bundle_files(folder))
        entry = build_entry(scored, judge=judge, label=label, run_digest=digest)
        artefacts = [file for run in runs for file in _list_artefacts(run)]
        bundle = sign_bundle(folder, entry, scored[0].manifest, artefacts, signing)
        _reject_findings(
            check_contents(bundle, load=lambda _: dataset, thresholds=_thresholds(settings))
        )
        try:
            pack_bundle(folder, out)
        except Refused as exc:
            raise UsageError(f"The bundle cannot be packed: {exc}.") from exc
    say(f"Wrote {out}: {entry.id}, {out.stat().st_size / 1_000_000:.1f} MB.")
    say(f"Next: gta leaderboard check {out}")


def _find_data(run: Path) -> str | None:
    """Return the dataset that the run was made with, if it is still at that path."""
    found = read_data_path(log_folder(run))
    return found if found is not None and Path(found).exists() else None


def _read_scored(run: Path) -> ScoredRun:
    manifest = read_manifest(run)
    if manifest.spec.mode != "workflow":
        return ScoredRun(run.name, manifest, read_scores(run))
    return ScoredRun(run.name, manifest, read_workflow_scores(run), read_judge_records(run))


def _open_key(file: Path) -> Ed25519PrivateKey:
    if file.exists():
        return read_key(file)
    say(f"Created a signing key: {file}. Keep it: it proves that later bundles are yours, too.")
    return make_key(file)


def _list_artefacts(run: Path) -> list[Deliverable]:
    """Return deliverables and states of tool servers, with paths that start with the task id."""
    spec = read_manifest(run).spec
    if spec.mode != "workflow":
        return []
    units = read_units(log_folder(run), spec.tasks, spec.epochs, WorkflowUnit).units
    return [
        file.model_copy(update={"path": f"{unit.task.id}/{file.path}"})
        for unit in units
        for file in (*unit.deliverables, *_list_states(unit))
    ]


def _list_states(unit: WorkflowUnit) -> Iterator[Deliverable]:
    """Yield the files of tool servers, with paths that start with `states`."""
    for state in unit.states:
        for when, snapshot in (("before", state.before), ("after", state.after)):
            for file in snapshot.files:
                path = f"states/{state.server}/{when}/{file.path}"
                yield file.model_copy(update={"path": path})


def _reject_secrets(folder: Path, settings: Settings) -> None:
    """Raise UsageError if a log contains a key, as logs of earlier versions can."""
    redactor = Redactor(read_secrets(settings))
    for file in sorted(folder.rglob("*.json*")):
        name = redactor.finds(file.read_bytes())
        if name is not None:
            raise UsageError(
                f"{file.relative_to(folder)} contains the value of {name}, so no bundle was made. "
                "Run it again with a key that is not part of messages."
            )


def _reject_findings(findings: Sequence[BundleFinding]) -> None:
    if findings:
        # Findings that only another run can fix come first.
        first, more = min(findings, key=lambda one: one.check in NEXT_STEPS), len(findings) - 1
        others = f" (and {more} more)" if more else ""
        raise UsageError(
            f"No bundle was made, because `gta leaderboard check` would reject it: {first.check}: "
            f"{first.message}{others}. {NEXT_STEPS.get(first.check, RUN_AGAIN)}"
        )


def check_bundles(
    files: Sequence[Path],
    data: str | None,
    settings: Settings,
    *,
    quiet: bool,
    board: Path | None = None,
) -> tuple[Checked, ...]:
    """Check each bundle; `board` is a folder with entries and bundles that are accepted already.

    Bundles are compared with the board and with those among them that are accepted.
    """
    known = [] if board is None else [*read_published_entries(), *_read_accepted(board)]
    accepted: list[Entry] = []
    found = []
    for file in files:
        with TemporaryDirectory() as folder:
            checked = _check(file, Path(folder), data, settings)
        if (entry := checked.entry) is not None:
            taken = _find_taken(entry, known, accepted)
            checked = checked._replace(findings=(*checked.findings, *taken))
            if not checked.findings and not check_entry(entry):
                accepted.append(entry)
        found.append(checked)
        if not quiet:
            _write_checked(file, checked)
    return tuple(found)


def _find_taken(
    entry: Entry, known: Sequence[Entry], accepted: Sequence[Entry]
) -> tuple[BundleFinding, ...]:
    """Return the first reason why the entry cannot be added: its id or its run is there already."""
    owners = {"the board already": known, "another bundle of this pull request": accepted}
    for owner, others in owners.items():
        for other in others:
            message = ""
            if other.id == entry.id:
                message = f"{owner} has {entry.id}; submit it with another --system"
            elif other.run_digest is not None and other.run_digest == entry.run_digest:
                message = f"{owner} has this run as {other.id}"
            if message:
                return (BundleFinding(check="entry", message=message),)
    return ()


def _read_accepted(board: Path) -> Iterator[Entry]:
    yield from read_entries(one for one in list_submissions([board]) if not is_bundle(one))
    yield from read_accepted_bundles(board)


def read_accepted_bundles(board: Path) -> Iterator[Entry]:
    """Yield the entries of a board's bundles, which were checked when they were accepted."""
    for file in filter(is_bundle, list_submissions([board])):
        with TemporaryDirectory() as folder:
            try:
                yield open_bundle(file, Path(folder)).entry
            except Refused as exc:
                raise UsageError(f"{file} is on the board but broken ({exc}). Remove it.") from exc


def list_submissions(paths: Sequence[Path]) -> list[Path]:
    """Return the files, and all bundles and entries in the folders."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [one for one in inside if path == one or one.suffix in (".zip", ".json")]
    return found


def read_submissions(
    paths: Sequence[Path], data: str | None, settings: Settings
) -> tuple[Entry, ...]:
    """Read entries and check bundles again; raise UsageError if one of them is rejected."""
    bundled: list[Entry] = []
    stated: list[Entry] = []
    for file in list_submissions(paths):
        if not is_bundle(file):
            own = read_entries([file])
            if any(entry.status == "published" for entry in own):
                raise UsageError(
                    f"{file} has an entry with the status 'published', which only the rows that "
                    "come with gta-bench have. Use 'self-reported'."
                )
            stated += own
            continue
        with TemporaryDirectory() as folder:
            checked = _check(file, Path(folder), data, settings)
        if checked.entry is None or checked.findings:
            first = checked.findings[0]
            raise UsageError(
                f"{file} is rejected ({first.check}: {first.message}), so no site was built. "
                f"`gta leaderboard check {file}` lists all findings."
            )
        bundled.append(checked.entry)
    known = {entry.id for entry in bundled}
    return raise_tiers(bundled, [_mark_alone(entry, known) for entry in stated])


def _mark_alone(entry: Entry, bundled: Collection[str]) -> Entry:
    """Mark an entry that no bundle supports."""
    if entry.id in bundled:
        return entry
    return entry.model_copy(update={"marks": (*entry.marks, "no bundle")})


def _check(file: Path, folder: Path, data: str | None, settings: Settings) -> Checked:
    load = _dataset_loader(data, settings)
    return check_bundle(file, folder, load=load, thresholds=_thresholds(settings))


def _thresholds(settings: Settings) -> Thresholds:
    return Thresholds(settings.judge.leaf_threshold, settings.judge.root_threshold)


def _dataset_loader(data: str | None, settings: Settings) -> LoadDataset:
    """Return a function that loads the dataset of a bundle from --data or the settings."""

    def load(name: DatasetName) -> Dataset:
        if name == "atomic":
            return load_atomic(dataset_root(data or settings.data.atomic, settings.datasets))
        return load_workflow(dataset_root(data or settings.data.workflow, settings.datasets))

    return load


def _write_checked(file: Path, checked: Checked) -> None:
    for finding in checked.findings:
        click.echo(f"{click.style(finding.check, fg='yellow', bold=True)} {finding.message}")
    if checked.signer:
        signature = f"signed by {checked.signer}"
    else:
        read = any(finding.check == "signature" for finding in checked.findings)
        signature = "no valid signature" if read else "signature not checked"
    verdict = "rejected" if checked.findings else "scores follow from its logs"
    entry = checked.entry
    marks = "" if entry is None else f" ({', '.join([entry.status, *entry.marks])})"
    say(f"{file}: {signature}; {verdict}{'' if checked.findings else marks}.")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to repeat, and with what.

    `files` is the submitter's run folder or its folder of artefacts, because deliverables are not
    in a bundle. `model` and `judge_model` are used instead of opening the named ones.
    """

    rejudge: int = 0
    rerun: int = 0
    judge: str | None = None
    files: Path | None = None
    data: str | None = None
    model: Model | None = None
    judge_model: Model | None = None


def verify_bundle(
    file: Path, wanted: Wanted, settings: Settings, *, seed: str | None = None
) -> tuple[Entry, Verification]:
    """Repeat a random part of a bundle; return the entry with the tier that this supports.

    Raises UsageError for a bundle that its check rejects.
    """
    if not wanted.rejudge and not wanted.rerun:
        raise UsageError("Say what to repeat: --rejudge LEAVES, --rerun TASKS, or both.")
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        opened = folder / "bundle"
        opened.mkdir()
        checked = _check(file, opened, wanted.data, settings)
        if checked.entry is None or checked.findings:
            first = checked.findings[0]
            raise UsageError(
                f"{file} is rejected ({first.check}: {first.message}), so nothing was repeated. "
                f"`gta leaderboard check {file}` lists all findings."
            )
        manifests = {run: read_manifest(run) for run in sorted((opened / "runs").iterdir())}
        # The run whose scores order the board comes first.
        runs = sorted(manifests, key=lambda run: manifests[run].spec.mode == "step")
        dataset = _dataset_loader(wanted.data, settings)(manifests[runs[0]].spec.dataset)
        drawn = seed or secrets.token_hex(16)
        repeatings = [
            _Repeating(run, manifests[run], dataset, checked.entry, wanted, settings, drawn)
            for run in runs
        ]
        repetitions = []
        if wanted.rejudge:
            repetitions.append(repeatings[0].rejudge(folder / "judged"))
        if wanted.rerun:
            repetitions += [one.rerun(folder / f"rerun-{one.run.name}") for one in repeatings]
    result = Verification(
        entry=checked.entry.id,
        run_digest=checked.entry.run_digest or "",
        when=datetime.now(UTC),
        seed=drawn,
        repetitions=tuple(repetitions),
        tier=_find_tier(repetitions),
    )
    return checked.entry.model_copy(update={"status": result.tier}), result


def _find_tier(repetitions: Sequence[Repetition]) -> Tier:
    """Return the highest tier that is supported; the lowest if a repetition disagrees.

    What was run again supports a tier if all runs of the bundle do.
    """
    if any(one.test.disagrees for one in repetitions):
        return "self-reported"
    found: Tier = "self-reported"
    for kind, tier in TIERS.items():
        own = [one.test.supports for one in repetitions if one.kind == kind]
        if own and all(own):
            found = tier
    return found


@dataclass(frozen=True)
class _Repeating:
    run: Path
    manifest: RunManifest
    dataset: Dataset
    entry: Entry
    wanted: Wanted
    settings: Settings
    seed: str

    def rejudge(self, folder: Path) -> Repetition:
        """Ask the judge again about random tasks with at least that many leaves."""
        spec = self.manifest.spec
        if spec.mode != "workflow":
            raise UsageError("GTA-Atomic has no judge: use --rerun instead of --rejudge.")
        units = read_units(log_folder(self.run), spec.tasks, 1, WorkflowUnit).units
        delivered = [unit for unit in units if unit.delivered]
        self._random("rejudge").shuffle(delivered)
        drawn: list[WorkflowUnit] = []
        while delivered and _count_leaves(drawn) < self.wanted.rejudge:
            drawn.append(delivered.pop())
        self._judge_again(folder, drawn)
        before, after = (self._leaf_scores(run) for run in (self.run, folder))
        # A score that is missing now counts as 0.
        outcomes = {
            unit.task.id: [
                (before[key], after.get(key, 0.0))
                for leaf in unit.task.leaves()
                if (key := (unit.task.id, leaf.id)) in before
            ]
            for unit in drawn
        }
        threshold = self.settings.judge.leaf_threshold
        return self._compare("re-judged", outcomes, REJUDGE_EFFECT, threshold)

    def rerun(self, folder: Path) -> Repetition:
        """Run the system again on random tasks."""
        spec = self.manifest.spec
        replayed = spec.tape is not None and spec.tape.mode != "record"
        if spec.system.agent not in LOOPS or spec.tools != LOCAL or replayed:
            raise UsageError(
                "--rerun can repeat only a model with a built-in agent, local tools, and no tape "
                "to replay. Run this system by its own command, then use `gta compare`."
            )
        tasks = tuple(
            self._random("rerun").sample(spec.tasks, min(self.wanted.rerun, len(spec.tasks)))
        )
        with unit_bar("run again") as listener:
            again = api.run(
                spec.dataset,
                folder,
                model=self.wanted.model or self._name_model(spec.system.model),
                data=self.dataset.root,
                tasks=",".join(tasks),
                settings=self.settings,
                judges=[self.wanted.judge_model or self._judge_name()]
                if spec.mode == "workflow"
                else [],
                **_system_options(spec, named=self.wanted.model is None),
                listener=listener,
            )
        stated = score_again(self.run, self.manifest, _thresholds(self.settings)).run.scores
        before, after = self._task_scores(stated), self._task_scores(again)
        outcomes = {
            task: [*zip(before[task], after.get(task, [0.0] * len(before[task])), strict=True)]
            for task in tasks
            if task in before
        }
        threshold = self.settings.judge.root_threshold if spec.mode == "workflow" else RIGHT
        return self._compare("re-run", outcomes, RERUN_EFFECT, threshold)

    def _name_model(self, model: str) -> str:
        """Return the name under which gta.toml has the model with its address, or its own name."""
        names = [name for name, own in self.settings.models.items() if own.model == model]
        if len(names) > 1:
            raise UsageError(
                f"{model!r} has several names under [models] in gta.toml: {', '.join(names)}. "
                "Leave the one to run again."
            )
        return next(iter(names), model)

    def _compare(
        self,
        kind: Literal["re-judged", "re-run"],
        outcomes: Mapping[str, Outcomes],
        effect: float,
        threshold: float,
    ) -> Repetition:
        kept = {task: own for task, own in outcomes.items() if own}
        if not kept:
            raise UsageError(f"Nothing could be {kind}: no outcome came back.")
        number = int.from_bytes(self._random("test").randbytes(4))
        test = find_inflation(kept, effect=effect, seed=number, threshold=threshold)
        return Repetition(kind=kind, mode=self.manifest.spec.mode, drawn=tuple(outcomes), test=test)

    def _judge_again(self, folder: Path, units: Sequence[WorkflowUnit]) -> None:
        """Copy the units to a run without verdicts, and let the entry's judge score it."""
        folder.mkdir()
        (folder / MANIFEST).write_bytes((self.run / MANIFEST).read_bytes())
        copytree(self.run / LOGS, folder / LOGS)
        store = ArtefactStore(folder / ARTEFACTS)
        for unit in units:
            store_task_inputs(self.dataset, unit.task, store)
            for file in (*unit.deliverables, *_list_states(unit)):
                store.keep(self._open_submitted().read(file.digest))
        tasks = tuple(unit.task.id for unit in units)
        judging = plan_judging([self._judge_name()], self.settings, tasks=tasks)
        opened = None if self.wanted.judge_model is None else [self.wanted.judge_model]
        if opened is None:
            name = name_judge(judging.models[0], judging.options)
        else:
            name = open_judges(judging, opened)[0].name
        if name != self.entry.judge:
            raise UsageError(
                f"The entry's judge is {self.entry.judge!r}, but these settings give {name!r}. "
                "Name the same model with --judge, and use the same [judge] in gta.toml."
            )
        for _ in judge_run(folder, judging, unit_bar, models=opened):
            pass

    def _open_submitted(self) -> ArtefactStore:
        files = self.wanted.files
        if files is None:
            raise UsageError(
                "Deliverables are not in a bundle: name the submitter's run folder with --files."
            )
        inside = files / ARTEFACTS
        return ArtefactStore(inside if inside.is_dir() else files)

    def _judge_name(self) -> str:
        if self.wanted.judge_model is not None:
            return str(self.wanted.judge_model)
        if self.wanted.judge is None:
            raise UsageError("Name the model of the entry's judge with --judge.")
        return self.wanted.judge

    def _leaf_scores(self, run: Path) -> dict[tuple[str, str], float]:
        """Return the score of each leaf: the mean over the judge's repeats."""
        values: dict[tuple[str, str], list[float]] = {}
        for key, row in read_verdicts(run).items():
            if key.judge == self.entry.judge and isinstance(row.verdict, Scored):
                values.setdefault((key.task, key.leaf), []).append(row.verdict.value)
        return {key: fmean(own) for key, own in values.items()}

    def _task_scores(self, scores: RunScores | WorkflowScores) -> dict[str, list[float]]:
        """Return the root score of each Workflow task, or what is right in each Atomic task.

        End to end, that is the score of the answer and the F1 of each category of tools that the
        reference uses; step by step, of the steps by each metric.
        """
        if isinstance(scores, WorkflowScores):
            table = scores.table(self.entry.judge or "")
            rows = () if table is None else table.tasks
            return {row.task: [row.root] for row in rows if row.root is not None}
        return {unit.task: [*_find_right(unit.strict)] for unit in scores.units}

    def _random(self, purpose: str) -> Random:
        return Random(f"{self.seed}/{purpose}")


def _find_right(counts: StrictStepCounts | StrictEndToEndCounts) -> Iterator[float]:
    if isinstance(counts, StrictEndToEndCounts):
        yield ANS_ACC_I.numerator(counts)
        for own in counts.categories.values():
            if own.gold:
                yield 2 * own.hits / (own.gold + own.predicted)
        return
    for metric in (INST_ACC, TOOL_ACC, ARG_ACC, SUMM_ACC):
        right, total = metric.part(counts)
        if total:
            yield right / total


def _count_leaves(units: Sequence[WorkflowUnit]) -> int:
    return sum(1 for unit in units for _ in unit.task.leaves())


def _system_options(spec: RunSpec, *, named: bool) -> dict[str, Any]:
    """Return the options of `api.run` for the same system; an open model has its own config."""
    system = spec.system
    options: dict[str, Any] = {"agent": system.agent, "images": system.images}
    if spec.mode != "workflow":
        options["mode"] = spec.mode
    if spec.loop is not None:
        options |= spec.loop.model_dump()
    if named:
        stated = {theirs: getattr(system, ours) for theirs, ours in NAMED.items()}
        generate = {name: value for name, value in stated.items() if value is not None}
        options |= {"generate": generate | {**system.generate}, "model_args": dict(system.args)}
    return options
