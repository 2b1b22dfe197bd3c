"""Cards of a page, one for each unit: its request, steps, files and verdicts.

A card is the context of the template `report_atomic.html` or `report_workflow.html`.
"""

import json
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import zip_longest
from typing import NamedTuple

from gta_bench.judging.messages import PictureSource
from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.strict.arguments import same_arguments
from gta_bench.metrics.strict.outcome import classify_step
from gta_bench.records.atomic import AtomicTask, FreeTextAnswer
from gta_bench.records.attempts import UnitKey
from gta_bench.records.evidence import FileEvidence
from gta_bench.records.files import Deliverable
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
from gta_bench.records.workflow_scores import JudgeScores
from gta_bench.reports.gains import describe_missed
from gta_bench.reports.tables import short
from gta_bench.runs.logs import pick_units
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial, run_mode
from gta_bench.web.task_view import view_task

STEPS_SHOWN = 40
LONGEST = 600
THUMBNAIL = (240, 200)
QUESTION = (360, 300)
FORMATS = ("PNG", "JPEG", "WEBP")
# Pictures that open: large enough to read a slide.
LARGE = (900, 900)
LARGE_BYTES = 6_000_000
PAGES_SHOWN = 3
FILES_SHOWN = 8


class _StepView(NamedTuple):
    """One step; `state` is "failed" or empty."""

    kind: str
    text: str
    note: str = ""
    state: str = ""


class PairView(NamedTuple):
    """A step of the reference and the prediction for it; `note` says how they differ."""

    reference: _StepView
    predicted: _StepView
    note: str
    state: str


class PictureBudget:
    """How many bytes of large pictures a page may still contain; then they become small ones."""

    def __init__(self, size: int = LARGE_BYTES) -> None:
        self.left = size

    def show(self, data: bytes) -> str:
        """Return a picture as a data URI, as large as the budget allows."""
        uri = thumbnail(data, LARGE if self.left > 0 else THUMBNAIL)
        self.left -= len(uri)
        return uri


def view_sections(
    run: RunMaterial, shown: Collection[UnitKey], *, budget: PictureBudget
) -> Iterator[dict[str, object]]:
    """Yield the card of each of the shown units, in their order."""
    # Of a long run, only these units and scores are in memory.
    if isinstance(run, AtomicRun):
        found = ((one.task, one.epoch, one) for one in run.summary.scores.units)
        scores = {(task, epoch): one for task, epoch, one in found if (task, epoch) in shown}
        for key, unit in pick_units(run.units, shown).items():
            section: dict[str, object] = {"key": key, "name": unit_name(*key), "unit": unit}
            yield section | _atomic_section(run, unit, scores.get(key))
        return
    judges = [
        judge.model_copy(
            update={
                "tasks": tuple(one for one in judge.tasks if (one.task, one.epoch) in shown),
            }
        )
        for judge in run.summary.scores.judges
    ]
    works = pick_units(run.units, shown)
    for key in shown:
        if key in works:
            section = {"key": key, "name": unit_name(*key), "unit": works[key]}
            yield section | _workflow_section(run, judges, works[key], budget)


def unit_name(task: str, epoch: int) -> str:
    """Return the name of a unit, which includes the epoch except for the first one."""
    return task if epoch == 1 else f"{task}, epoch {epoch}"


def _atomic_section(run: AtomicRun, unit: AtomicUnit, score: UnitScore | None) -> dict[str, object]:
    step = run_mode(run) == "step"
    return {
        "kind": "atomic",
        "about": "" if score is None else describe_missed(score, unit),
        "wanted": reference_text(unit.task),
        "pairs": pair_steps(unit) if step else (),
        "steps": () if step else _view_steps(unit.trace or ()),
        "pictures": _question(run, unit),
    }


def _workflow_section(
    run: JudgedRun, judges: Sequence[JudgeScores], unit: WorkflowUnit, budget: PictureBudget
) -> dict[str, object]:
    scores = run.summary.scores
    # Judges may have been shown the inputs, then these pictures are in the gallery.
    shown = any(file.digest in run.evidence for file in unit.inputs)
    return {
        "kind": "workflow",
        "pictures": () if shown else _question(run, unit),
        "files": _gallery(unit.deliverables, run.evidence, run.picture, budget),
        "inputs": _gallery(unit.inputs, run.evidence, run.picture, budget),
        "steps": _view_steps(unit.trace),
        "views": [
            view_task(
                unit,
                judge,
                run.verdicts,
                leaf_threshold=scores.leaf_threshold,
                root_threshold=scores.root_threshold,
            )
            for judge in judges
        ],
    }


def _question(run: RunMaterial, unit: AtomicUnit | WorkflowUnit) -> list[tuple[str, str]]:
    """Return the pictures of the question as data URIs, each with its path."""
    found = run.questions.pictures(unit)
    return [(thumbnail(one.data, QUESTION), one.path) for one in found]


def reference_text(task: AtomicTask) -> str:
    """Return the reference answer as text."""
    if task.answer is None:
        return "an image"
    if isinstance(task.answer, FreeTextAnswer):
        return _cut(task.answer.references[0] if task.answer.references else "")
    wanted = " and ".join(" or ".join(group) for group in task.answer.whitelist)
    unwanted = " or ".join(alias for group in task.answer.blacklist or () for alias in group)
    return _cut(wanted + (f"; not {unwanted}" if unwanted else ""))


def pair_steps(unit: AtomicUnit) -> list[PairView]:
    """Return each turn of the reference with its prediction in step mode."""
    gold, pairs = reference_steps(unit.task), []
    for left, right in zip_longest((unit.trace or ())[: len(gold)], gold):
        predicted = _StepView("nothing", "") if left is None else _view_step(left)
        note = _difference(left, right)
        state = "failed" if note else "passed"
        pairs.append(PairView(_view_step(right), predicted, note, state))
    return pairs


def _difference(left: PredictedStep | None, right: CallStep | AnswerStep) -> str:
    """Return how a prediction differs from the reference; empty if it does not."""
    if left is None:
        return "missing"
    kind = classify_step(left)
    if kind != right.step:
        return {"failed_call": "failed call", "other": "no turn"}.get(kind, kind)
    if isinstance(left, CallStep) and isinstance(right, CallStep):
        if left.name != right.name:
            return "other tool"
        return "" if same_arguments(left.arguments, right.arguments) else "other arguments"
    return ""


def _view_steps(trace: Sequence[PredictedStep]) -> list[_StepView]:
    return [_view_step(step) for step in trace[:STEPS_SHOWN]]


def _view_step(step: PredictedStep) -> _StepView:
    match step:
        case CallStep(name=name, arguments=arguments, error=error):
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)
            note = "" if error is None else _cut(f"{error.type}: {error.message}".rstrip(": "))
            text = f"{name} {_cut(arguments)}"
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


def _cut(text: str) -> str:
    return short(text, LONGEST)


def _gallery(
    files: Sequence[Deliverable],
    evidence: Mapping[str, FileEvidence],
    picture: PictureSource,
    budget: PictureBudget,
) -> dict[str, object]:
    """Return the first files with thumbnails from their evidence, which is keyed by digest."""
    views = []
    for file in files[:FILES_SHOWN]:
        view = {"path": file.path, "size": _size(file.size), "pictures": (), "more": 0}
        shown = evidence.get(file.digest)
        if shown is None:
            view["notes"] = ("not shown to any judge",)
        else:
            pages = shown.pictures[:PAGES_SHOWN]
            view["size"] = f"{shown.kind}, {_size(file.size)}"
            view["pictures"] = [(budget.show(picture(one.digest)), one.label) for one in pages]
            view["more"] = len(shown.pictures) - len(pages)
            view["notes"] = (*shown.findings, *shown.cut, *shown.unshown)
        views.append(view)
    return {"files": views, "left_out": len(files) - len(views)}


def thumbnail(data: bytes, size: tuple[int, int] = THUMBNAIL) -> str:
    """Return a small version of a picture as a data URI."""
    from PIL import Image

    with Image.open(BytesIO(data), formats=FORMATS) as opened:
        opened.draft("RGB", size)
        opened.thumbnail(size)
        shades = opened.convert("RGBA")
    flat = Image.new("RGB", shades.size, "white")
    flat.paste(shades, mask=shades)
    encoded = BytesIO()
    flat.save(encoded, "WEBP", quality=68)
    return f"data:image/webp;base64,{b64encode(encoded.getvalue()).decode()}"


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def view_trace(trace: Sequence[PredictedStep]) -> list[_StepView]:
    """Return the first steps of a trace."""
    return _view_steps(trace)
