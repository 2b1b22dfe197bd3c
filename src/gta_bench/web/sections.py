"""Units on a page: what was asked, done, delivered and judged, one section each."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.strict.arguments import same_arguments
from gta_bench.metrics.strict.outcome import outcome
from gta_bench.records.atomic import AtomicTask, FreeTextAnswer
from gta_bench.records.attempts import UnitKey
from gta_bench.records.scores import UnitScore
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    ThoughtStep,
)
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.reports.gains import missed
from gta_bench.reports.tables import short
from gta_bench.web.gallery import Gallery, gallery
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial, anchor
from gta_bench.web.task_view import TaskView, view_task

STEPS_SHOWN = 40
LONGEST = 600


@dataclass(frozen=True)
class _StepView:
    """One step; `state` is passed, failed or nothing."""

    kind: str
    text: str
    note: str = ""
    state: str = ""


@dataclass(frozen=True)
class PairView:
    """A step of the reference and what the system said in its place."""

    reference: _StepView
    predicted: _StepView
    note: str
    state: str


def shown_steps(trace: Sequence[PredictedStep]) -> tuple[_StepView, ...]:
    """The first steps of a trace, shortened."""
    return tuple(_view(step) for step in trace[:STEPS_SHOWN])


def paired_steps(unit: AtomicUnit) -> tuple[PairView, ...]:
    """Step mode: every turn of the reference with the prediction for it."""
    return tuple(_pairs(unit))


def reference_text(task: AtomicTask) -> str:
    """What a good answer says."""
    if task.answer is None:
        return "an image"
    if isinstance(task.answer, FreeTextAnswer):
        return _cut(task.answer.references[0] if task.answer.references else "")
    wanted = " and ".join(" or ".join(group) for group in task.answer.whitelist)
    unwanted = " or ".join(alias for group in task.answer.blacklist or () for alias in group)
    return _cut(wanted + (f"; not {unwanted}" if unwanted else ""))


def _cut(text: str) -> str:
    return short(text, LONGEST)


def _pairs(unit: AtomicUnit) -> Iterator[PairView]:
    gold = reference_steps(unit.task)
    for left, right in zip_longest((unit.trace or ())[: len(gold)], gold):
        said = _StepView("nothing", "") if left is None else _view(left)
        note = _difference(left, right)
        yield PairView(_view(right), said, note, "failed" if note else "passed")


def _difference(left: PredictedStep | None, right: CallStep | AnswerStep) -> str:
    """What is wrong with a prediction; nothing where it does what the reference does."""
    if left is None:
        return "missing"
    kind = outcome(left)
    if kind != right.step:
        return {"failed_call": "failed call"}.get(kind, kind if kind != "other" else "no turn")
    if isinstance(left, CallStep) and isinstance(right, CallStep):
        if left.name != right.name:
            return "other tool"
        return "" if same_arguments(left.arguments, right.arguments) else "other arguments"
    return ""


def _view(step: PredictedStep) -> _StepView:
    match step:
        case CallStep(name=name, arguments=arguments, error=error):
            text = f"{name} {_cut(_arguments(arguments))}"
            note = "" if error is None else _cut(f"{error.type}: {error.message}".rstrip(": "))
            return _StepView("call", text, note, "failed" if error else "")
        case AnswerStep(content=content, error=error):
            note = "" if error is None else error.type
            return _StepView("answer", _cut(content), note, "failed" if error else "")
        case MalformedStep(content=content, reason=reason):
            return _StepView("malformed", _cut(content), reason, "failed")
        case ThoughtStep(content=content):
            return _StepView("thought", _cut(content))
        case ReplyStep(parts=parts):
            text = "\n".join(part.content for part in parts)
            return _StepView("reply", _cut(text) if parts else "nothing")


def _arguments(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False)


@dataclass(frozen=True)
class AtomicSection:
    """An Atomic unit with its steps."""

    anchor: str
    name: str
    unit: AtomicUnit
    about: str
    wanted: str
    pairs: tuple[PairView, ...]
    steps: tuple[_StepView, ...]
    kind: str = "atomic"


@dataclass(frozen=True)
class WorkflowSection:
    """A Workflow unit with its files, its steps and, for each judge, its tree."""

    anchor: str
    name: str
    unit: WorkflowUnit
    files: Gallery
    inputs: Gallery
    steps: tuple[_StepView, ...]
    views: tuple[TaskView, ...]
    kind: str = "workflow"


def unit_name(task: str, epoch: int) -> str:
    """A unit in a word: the first epoch goes without saying."""
    return task if epoch == 1 else f"{task}, epoch {epoch}"


def view_sections(
    number: int, run: RunMaterial, shown: Collection[UnitKey]
) -> Iterator[AtomicSection | WorkflowSection]:
    """A section for every unit that is shown, in the run's order."""
    if isinstance(run, JudgedRun):
        for unit in run.units:
            if (unit.task.id, unit.epoch) in shown:
                yield _workflow_section(number, run, unit)
        return
    scores = {(one.task, one.epoch): one for one in run.summary.scores.units}
    for one in run.units:
        if (one.task.id, one.epoch) in shown:
            yield _atomic_section(number, run, one, scores.get((one.task.id, one.epoch)))


def _atomic_section(
    number: int, run: AtomicRun, unit: AtomicUnit, score: UnitScore | None
) -> AtomicSection:
    step = run.mode == "step"
    return AtomicSection(
        anchor=anchor(number, unit.task.id, unit.epoch),
        name=unit_name(unit.task.id, unit.epoch),
        unit=unit,
        about="" if score is None else missed(score, unit),
        wanted=reference_text(unit.task),
        pairs=paired_steps(unit) if step else (),
        steps=() if step else shown_steps(unit.trace or ()),
    )


def _workflow_section(number: int, run: JudgedRun, unit: WorkflowUnit) -> WorkflowSection:
    scores = run.summary.scores
    return WorkflowSection(
        anchor=anchor(number, unit.task.id, unit.epoch),
        name=unit_name(unit.task.id, unit.epoch),
        unit=unit,
        files=gallery(unit.deliverables, run.evidence, run.picture),
        inputs=gallery(unit.inputs, run.evidence, run.picture),
        steps=shown_steps(unit.trace),
        views=tuple(
            view_task(
                unit,
                judge,
                run.verdicts,
                leaf_threshold=scores.leaf_threshold,
                root_threshold=scores.root_threshold,
            )
            for judge in scores.judges
        ),
    )
