"""A part of a submitted bundle repeated: leaves judged again, tasks run again.

A check shows that a bundle is consistent. Whoever forged all of it in the same way is found by
repeating what a seed draws that did not exist when the bundle was made.
"""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from shutil import copytree
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from inspect_ai.model import Model

from gta_bench import api
from gta_bench.agents.generation import NAMED
from gta_bench.cli.bundles import loader, thresholds_of
from gta_bench.datasets.model import Dataset
from gta_bench.errors import UsageError
from gta_bench.harnesses.delivery import kept_inputs
from gta_bench.leaderboard.checks import LOOPS
from gta_bench.leaderboard.verification import check_bundle, score_again
from gta_bench.records.leaderboard import Entry, Repetition, Tier, Verification
from gta_bench.records.progress import RunProgress
from gta_bench.records.run import RunManifest, RunSpec, System
from gta_bench.records.scores import RunScores, StrictEndToEndCounts
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.running.judge_run import judge_run, name_judge, open_judges, plan_judging
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import (
    LOGS,
    MANIFEST,
    log_folder,
    read_manifest,
)
from gta_bench.runs.logs import read_units
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.serving.choice import LOCAL
from gta_bench.settings import Settings
from gta_bench.statistics.inflation import Outcomes, find_inflation

# What a repetition must be able to find: so large a share of outcomes turned into passes.
REJUDGE_EFFECT, RERUN_EFFECT = 0.1, 0.2
RIGHT = 0.5
# The tier that a repetition supports.
TIERS: Mapping[str, Tier] = {"re-judged": "re-judged", "re-run": "reproduced"}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is repeated, and with what.

    `files` is the submitter's run, or its folder of artefacts: deliverables are not in a bundle.
    `model` and `judge_model` are asked instead of opening those that are named.
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
    """The entry with the tier that repeating supports; refuses a bundle that its check refuses."""
    if not wanted.rejudge and not wanted.rerun:
        raise UsageError("Name what to repeat: --rejudge LEAVES, --rerun TASKS, or both.")
    load = loader(wanted.data, settings)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        opened = folder / "bundle"
        opened.mkdir()
        checked = check_bundle(file, opened, load=load, thresholds=thresholds_of(settings))
        if checked.entry is None or checked.findings:
            first = checked.findings[0]
            raise UsageError(f"{file} is refused ({first.check}: {first.message}).")
        run = _headline_run(opened)
        manifest = read_manifest(run)
        dataset = load(manifest.spec.dataset)
        drawn = seed or secrets.token_hex(16)
        repeating = _Repeating(run, manifest, dataset, checked.entry, wanted, settings, drawn)
        repetitions = []
        if wanted.rejudge:
            repetitions.append(repeating.rejudge(folder / "judged"))
        if wanted.rerun:
            repetitions.append(repeating.rerun(folder / "rerun"))
    result = Verification(
        entry=checked.entry.id,
        run_digest=checked.entry.run_digest or "",
        when=datetime.now(UTC),
        seed=drawn,
        repetitions=tuple(repetitions),
        tier=_tier(repetitions),
    )
    return checked.entry.model_copy(update={"status": result.tier}), result


def _tier(repetitions: Sequence[Repetition]) -> Tier:
    """The highest tier that is supported; none where a repetition disagrees."""
    found: Tier = "self-reported"
    for one in repetitions:
        if one.test.disagrees:
            return "self-reported"
        if one.test.supports:
            found = TIERS[one.kind]
    return found


def _headline_run(bundle: Path) -> Path:
    """The run whose scores order the board: not the one in step mode."""
    runs = sorted((bundle / "runs").iterdir())
    return next(run for run in runs if read_manifest(run).spec.mode != "step")


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
        """Ask the judge again about tasks with so many leaves."""
        spec = self.manifest.spec
        if spec.mode != "workflow":
            raise UsageError("GTA-Atomic has no judge: leave out --rejudge, and use --rerun.")
        units = read_units(log_folder(self.run), spec.tasks, 1, WorkflowUnit).units
        delivered = [unit for unit in units if unit.delivered]
        self._dice("rejudge").shuffle(delivered)
        drawn: list[WorkflowUnit] = []
        while delivered and _leaves(drawn) < self.wanted.rejudge:
            drawn.append(delivered.pop())
        self._judge_again(folder, drawn)
        before, after = (self._leaf_scores(run) for run in (self.run, folder))
        # A score that does not come back is none that repeating gives.
        outcomes = {
            unit.task.id: [
                (before[key], after.get(key, 0.0))
                for leaf in unit.task.leaves()
                if (key := (unit.task.id, leaf.id)) in before
            ]
            for unit in drawn
        }
        threshold = self.settings.judge.leaf_threshold
        return self._compared("re-judged", outcomes, REJUDGE_EFFECT, threshold)

    def rerun(self, folder: Path) -> Repetition:
        """Let the system do so many tasks again."""
        spec = self.manifest.spec
        if spec.system.agent not in LOOPS or spec.tools != LOCAL or spec.tape is not None:
            raise UsageError(
                "--rerun repeats a model with an agent and tools of ours. Run this system by its "
                "own command, and compare by `gta compare`."
            )
        tasks = tuple(
            self._dice("rerun").sample(spec.tasks, min(self.wanted.rerun, len(spec.tasks)))
        )
        again = api.run(
            spec.dataset,
            folder,
            model=self.wanted.model or spec.system.model,
            data=self.dataset.root,
            tasks=",".join(tasks),
            settings=self.settings,
            judges=[self._judge()] if spec.mode == "workflow" else [],
            **_options(spec, named=self.wanted.model is None),
        )
        stated = score_again(self.run, self.manifest, thresholds_of(self.settings)).run.scores
        before, after = self._tasks(stated), self._tasks(again)
        outcomes = {
            task: [(before[task], after.get(task, 0.0))] for task in tasks if task in before
        }
        threshold = self.settings.judge.root_threshold if spec.mode == "workflow" else 1.0
        return self._compared("re-run", outcomes, RERUN_EFFECT, threshold)

    def _compared(
        self, kind: Any, outcomes: dict[str, Any], effect: float, threshold: float
    ) -> Repetition:
        kept: dict[str, Outcomes] = {task: own for task, own in outcomes.items() if own}
        if not kept:
            raise UsageError(f"Nothing could be {kind}: no outcome came back.")
        number = int.from_bytes(self._dice("test").randbytes(4))
        test = find_inflation(kept, effect=effect, seed=number, threshold=threshold)
        return Repetition(kind=kind, drawn=tuple(outcomes), test=test)

    def _judge_again(self, folder: Path, units: Sequence[WorkflowUnit]) -> None:
        """The drawn units as a run that no judge has seen, before the entry's judge."""
        folder.mkdir()
        (folder / MANIFEST).write_bytes((self.run / MANIFEST).read_bytes())
        copytree(self.run / LOGS, folder / LOGS)
        store = ArtefactStore(folder / ARTEFACTS)
        for unit in units:
            kept_inputs(self.dataset, unit.task, store)
            for file in unit.deliverables:
                store.keep(self._submitted().read(file.digest))
        tasks = tuple(unit.task.id for unit in units)
        judging = plan_judging([self._named_judge()], self.settings, tasks=tasks)
        opened = None if self.wanted.judge_model is None else [self.wanted.judge_model]
        if opened is None:
            name = name_judge(judging.models[0], judging.options)
        else:
            name = open_judges(judging, opened)[0].name
        if name != self.entry.judge:
            raise UsageError(
                f"The entry's judge is {self.entry.judge!r}; these settings make {name!r}. Name "
                "the same model by --judge, with the same [judge] in gta.toml."
            )
        for _ in judge_run(folder, judging, lambda _: nullcontext(_nobody), models=opened):
            pass

    def _submitted(self) -> ArtefactStore:
        files = self.wanted.files
        if files is None:
            raise UsageError(
                "Deliverables are not in a bundle: name the submitter's run folder by --files."
            )
        inside = files / ARTEFACTS
        return ArtefactStore(inside if inside.is_dir() else files)

    def _named_judge(self) -> str:
        if self.wanted.judge_model is not None:
            return str(self.wanted.judge_model)
        if self.wanted.judge is None:
            raise UsageError("Name the model of the entry's judge by --judge.")
        return self.wanted.judge

    def _judge(self) -> str | Model:
        return self.wanted.judge_model or self._named_judge()

    def _leaf_scores(self, run: Path) -> dict[tuple[str, str], float]:
        """The score of each leaf: the mean of the judge's repeats."""
        values: dict[tuple[str, str], list[float]] = {}
        for key, row in read_verdicts(run).items():
            if key.judge == self.entry.judge and isinstance(row.verdict, Scored):
                values.setdefault((key.task, key.leaf), []).append(row.verdict.value)
        return {key: fmean(own) for key, own in values.items()}

    def _tasks(self, scores: RunScores | WorkflowScores) -> dict[str, float]:
        """The root of each task; of GTA-Atomic, 1 where it is right."""
        if isinstance(scores, WorkflowScores):
            table = scores.table(self.entry.judge or "")
            rows = () if table is None else table.tasks
            return {row.task: row.root for row in rows if row.root is not None}
        return {
            unit.task: float(unit.strict.answer_sum + unit.strict.image_sum >= RIGHT)
            for unit in scores.units
            if isinstance(unit.strict, StrictEndToEndCounts)
        }

    def _dice(self, purpose: str) -> Random:
        return Random(f"{self.seed}/{purpose}")


def _leaves(units: Sequence[WorkflowUnit]) -> int:
    return sum(1 for unit in units for _ in unit.task.leaves())


def _options(spec: RunSpec, *, named: bool) -> dict[str, Any]:
    """How the system worked; a model that is open already says itself how it writes."""
    options: dict[str, Any] = {"agent": spec.system.agent, "images": spec.system.images}
    if spec.mode != "workflow":
        options["mode"] = spec.mode
    if spec.loop is not None:
        options |= spec.loop.model_dump()
    if named:
        options |= {"generate": _generate(spec.system), "model_args": dict(spec.system.args)}
    return options


def _generate(system: System) -> dict[str, Any]:
    stated = {theirs: getattr(system, ours) for theirs, ours in NAMED.items()}
    return {name: value for name, value in stated.items() if value is not None} | {
        **system.generate
    }


def _nobody(_: RunProgress) -> None:
    """Nobody watches how far judging is."""
