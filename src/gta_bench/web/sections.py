"""Units on a page: what was asked, done, delivered and judged, one section each."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gta_bench.records.scores import UnitScore
from gta_bench.records.units import AtomicUnit, WorkflowUnit
from gta_bench.reports.gains import missed
from gta_bench.web.gallery import Gallery, gallery
from gta_bench.web.material import AtomicRun, JudgedRun, RunMaterial, UnitKey, anchor
from gta_bench.web.task_view import TaskView, view_task
from gta_bench.web.trace_view import (
    PairView,
    StepView,
    paired_steps,
    reference_text,
    shown_steps,
)


@dataclass(frozen=True)
class AtomicSection:
    """An Atomic unit with its steps."""

    anchor: str
    name: str
    unit: AtomicUnit
    about: str
    wanted: str
    pairs: tuple[PairView, ...]
    steps: tuple[StepView, ...]
    kind: str = "atomic"


@dataclass(frozen=True)
class WorkflowSection:
    """A Workflow unit with its files, its steps and, for each judge, its tree."""

    anchor: str
    name: str
    unit: WorkflowUnit
    files: Gallery
    inputs: Gallery
    steps: tuple[StepView, ...]
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
