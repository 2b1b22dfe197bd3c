"""The data of a page: runs with scores and units, and for Workflow also verdicts and files."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from gta_bench.errors import format_count
from gta_bench.judging.messages import PictureSource
from gta_bench.records.attempts import UnitKey
from gta_bench.records.evidence import FileEvidence
from gta_bench.records.run import RunManifest, RunMode
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep, Trace
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.records.verdicts import VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint
from gta_bench.reports.summary import RunSummary
from gta_bench.reports.tables import line
from gta_bench.reports.workflow_summary import WorkflowSummary
from gta_bench.runs.logs import UnitStream
from gta_bench.web.questions import NO_QUESTIONS, QuestionSource

# The units of a run that its page lists; the page of a longer run says how many it leaves out.
UNITS_LISTED: Final = 20_000


@dataclass(frozen=True)
class AtomicRun:
    """An Atomic run and its units; `path` is what commands call it, if not by its name."""

    summary: RunSummary
    units: UnitStream[AtomicUnit] | Sequence[AtomicUnit]
    path: str = ""
    questions: QuestionSource = NO_QUESTIONS


@dataclass(frozen=True)
class JudgedRun:
    """A Workflow run; `evidence` is what judges see of each file, by its digest."""

    summary: WorkflowSummary
    units: UnitStream[WorkflowUnit] | Sequence[WorkflowUnit]
    verdicts: Mapping[VerdictKey, VerdictRow]
    evidence: Mapping[str, FileEvidence]
    picture: PictureSource
    path: str = ""
    questions: QuestionSource = NO_QUESTIONS


RunMaterial = AtomicRun | JudgedRun


class Reference(NamedTuple):
    """What groups of units need of an Atomic task: tools of the reference, and kind of answer."""

    tools: frozenset[str]
    answer: str


class UnitWork(NamedTuple):
    """What a unit did, in a few words: its calls and steps, and the types of its files."""

    calls: int
    steps: int
    kinds: tuple[str, ...]
    traced: bool = True

    @property
    def text(self) -> str:
        """The number of calls, or of steps if there are none."""
        if not self.traced:
            return "no prediction"
        if self.calls:
            return format_count(self.calls, "call")
        return format_count(self.steps, "step")


@dataclass(frozen=True)
class UnitScan:
    """What a page needs of all units of a run, read in one pass.

    `categories` are those of tools that are not ours; `trees` are of Workflow units. `about` has
    the request and category of each task, `work` what the first units did.
    """

    keys: list[UnitKey] = field(default_factory=list)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    references: dict[str, Reference] = field(default_factory=dict)
    categories: dict[str, str] = field(default_factory=dict)
    trees: dict[UnitKey, Sequence[Checkpoint]] = field(default_factory=dict)
    about: dict[str, tuple[str, str]] = field(default_factory=dict)
    work: dict[UnitKey, UnitWork] = field(default_factory=dict)


def scan_units(run: RunMaterial) -> UnitScan:
    """Read all units of a run once."""
    found = UnitScan()
    for unit in run.units:
        key = (unit.task.id, unit.epoch)
        found.keys.append(key)
        found.errors.update(error_kinds(unit))
        if len(found.work) < UNITS_LISTED:
            found.work[key] = _describe_work(unit)
        if isinstance(unit, WorkflowUnit):
            found.trees[key] = unit.task.checkpoints
            category = unit.task.category or "no category"
            found.about.setdefault(unit.task.id, (line(unit.task.request), category))
            continue
        answer = unit.task.answer
        kind = "image" if answer is None else answer.kind.replace("_", " ")
        tools = frozenset(turn.call.name for turn in unit.task.calls)
        found.references[unit.task.id] = Reference(tools, kind)
        found.about.setdefault(unit.task.id, (line(unit.task.request), f"answer: {kind}"))
        found.categories.update(
            (call.tool, call.category) for call in unit.calls if call.category is not None
        )
    return found


def _describe_work(unit: AtomicUnit | WorkflowUnit) -> UnitWork:
    trace = unit.trace or ()
    calls = len(unit.calls) or sum(isinstance(step, CallStep) for step in trace)
    kinds = dict.fromkeys(PurePosixPath(file.path).suffix[1:8] for file in unit.deliverables)
    return UnitWork(calls, len(trace), tuple(filter(None, kinds)), unit.trace is not None)


def run_mode(run: RunMaterial) -> RunMode:
    """Return the mode of a run."""
    return run.summary.scores.mode if isinstance(run, AtomicRun) else "workflow"


def anchor(number: int, task: str, epoch: int) -> str:
    """Return the id of a unit's section on the page, for the run with this number."""
    return f"run-{number}-task-{re.sub(r'[^A-Za-z0-9_.-]', '_', task)}-{epoch}"


def list_facts(manifest: RunManifest, scoring: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield what is needed to repeat the run, and when it was extended.

    `scoring` is the version of the scoring rules, if it has scores.
    """
    spec = manifest.spec
    yield ("imported" if manifest.imported_from else "run"), f"{manifest.created:%Y-%m-%d}"
    yield "dataset", f"{spec.dataset} {manifest.dataset_digest[:12]}"
    if scoring is not None:
        yield "scoring version", str(scoring)
    yield "tools", spec.tools
    if spec.system.harness_digest is not None:
        yield "harness files", spec.system.harness_digest[:12]
    if spec.network is not None:
        yield "network", spec.network
    if spec.epochs > 1:
        yield "epochs", str(spec.epochs)
    after = (*(one.epochs for one in manifest.growth[1:]), spec.epochs)
    for one, epochs in zip(manifest.growth, after, strict=False):
        added = [f"tasks added: {len(one.tasks)}"] if one.tasks else []
        if epochs > one.epochs:
            added.append(f"epochs: {one.epochs} to {epochs}")
        yield "extended", f"{one.when:%Y-%m-%d}, {', '.join(added)}"
    for name in ("gta-bench", "inspect_ai"):
        if name in manifest.packages:
            yield name, manifest.packages[name]


def error_kinds(unit: AtomicUnit | WorkflowUnit) -> Iterator[tuple[str, str]]:
    """Yield the errors of a unit's calls and replies: tool or kind of reply, and message."""
    for call in unit.calls:
        if call.status != "done":
            yield call.tool, line(call.message) or call.status
    yield from _trace_kinds(unit.trace or (), with_calls=not unit.calls)


def _trace_kinds(trace: Trace, *, with_calls: bool) -> Iterator[tuple[str, str]]:
    """Yield errors of a trace; calls count here only if no executor recorded them."""
    for step in trace:
        match step:
            case MalformedStep(reason=reason):
                yield "reply", reason
            case AnswerStep(error=error) if error is not None:
                yield "answer", error.type
            case CallStep(name=name, error=error) if error is not None and with_calls:
                yield name, error.type
