"""Finished results of a system, written as an ordinary run."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.model import AtomicDataset, Dataset, WorkflowDataset
from gta_bench.datasets.upstream import dummy_notes
from gta_bench.errors import format_count
from gta_bench.harnesses.collecting import FoundFile, LeftOut, keep_files
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.calls import CallRecord
from gta_bench.records.files import Deliverable
from gta_bench.records.finding import Finding
from gta_bench.records.finished import ResultMeta, Tokens
from gta_bench.records.run import RunManifest
from gta_bench.records.steps import Trace
from gta_bench.records.units import AtomicUnit, Usage, WorkflowUnit
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import open_run
from gta_bench.runs.imported import write_imported

MOST_STRAYS = 50
SYSTEM_FIELDS = ("model", "harness", "harness_version")


class Delivery(NamedTuple):
    """The results of one task; its files are not read yet."""

    trace: Trace = ()
    calls: tuple[CallRecord, ...] = ()
    files: tuple[FoundFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    meta: ResultMeta = ResultMeta()


class Finished(NamedTuple):
    """Deliveries by task, what the source states about all of them, and findings about it."""

    deliveries: Mapping[str, Delivery]
    meta: ResultMeta = ResultMeta()
    findings: tuple[Finding, ...] = ()

    def stated(self, field: str) -> str | None:
        """Return a field of the system, if the source or all of its tasks state the same."""
        whole: str | None = getattr(self.meta, field)
        each = {getattr(one.meta, field) for one in self.deliveries.values()} - {None}
        return whole if whole is not None else each.pop() if len(each) == 1 else None

    def list_disagreements(self) -> list[str]:
        """Return a note for each field of the system that has several values."""
        notes = []
        for field in SYSTEM_FIELDS:
            metas = (self.meta, *(one.meta for one in self.deliveries.values()))
            named = {getattr(meta, field) for meta in metas} - {None}
            if len(named) > 1:
                notes.append(
                    f"tasks have different values of `{field}`: {', '.join(sorted(named))}."
                )
        return notes


class Imported(NamedTuple):
    """The result of an import: the tasks, those without a delivery, and the files."""

    tasks: int
    missing: tuple[str, ...]
    files: int
    findings: tuple[Finding, ...]


def write_finished(
    out: Path, planned: RunManifest, dataset: Dataset, finished: Finished
) -> Imported:
    """Write the deliveries as the units of a run; a task without one has delivered nothing."""
    missing = tuple(task for task in planned.spec.tasks if task not in finished.deliveries)
    notes = [*planned.notes, *finished.list_disagreements()]
    notes += dummy_notes([call for one in finished.deliveries.values() for call in one.calls])
    if missing:
        tasks = format_count(len(planned.spec.tasks), "task")
        notes.append(f"not delivered: {len(missing)} of {tasks}.")
    manifest = open_run(out, planned.model_copy(update={"notes": tuple(notes)}))
    wanted = [(dataset.tasks[task], finished.deliveries.get(task)) for task in planned.spec.tasks]
    if isinstance(dataset, AtomicDataset):
        write_imported(out, manifest, [_atomic_unit(dataset, task, one) for task, one in wanted])
        return Imported(len(wanted), missing, 0, finished.findings)
    store = ArtefactStore(out / ARTEFACTS)
    found = [_workflow_unit(dataset, task, one, store) for task, one in wanted]
    write_imported(out, manifest, [unit for unit, _ in found])
    left_out = [finding for _, findings in found for finding in findings]
    files = sum(len(unit.deliverables) for unit, _ in found)
    return Imported(len(wanted), missing, files, (*finished.findings, *left_out))


def _atomic_unit(
    dataset: AtomicDataset, task: AtomicTask | WorkflowTask, delivered: Delivery | None
) -> AtomicUnit:
    assert isinstance(task, AtomicTask)
    delivery = delivered or Delivery()
    return AtomicUnit(
        task=task,
        trace=None if delivered is None else delivery.trace,
        calls=delivery.calls,
        usage=_read_usage(delivery.meta),
        digests=task_digests(dataset, task.id),
    )


def _workflow_unit(
    dataset: WorkflowDataset,
    task: AtomicTask | WorkflowTask,
    delivered: Delivery | None,
    store: ArtefactStore,
) -> tuple[WorkflowUnit, list[Finding]]:
    assert isinstance(task, WorkflowTask)
    delivery = delivered or Delivery()
    inputs = store_task_inputs(dataset, task, store)
    kept = keep_files(store, delivery.files, inputs={item.digest for item in inputs})
    left_out = (*delivery.left_out, *kept.left_out)
    unit = WorkflowUnit(
        task=task,
        trace=delivery.trace,
        calls=delivery.calls,
        deliverables=kept.deliverables,
        inputs=inputs,
        strays=tuple(item.name for item in left_out[:MOST_STRAYS]),
        delivered=delivered is not None,
        usage=_read_usage(delivery.meta),
        digests=task_digests(dataset, task.id),
    )
    return unit, list(_left_out_findings(task.id, left_out))


def store_task_inputs(
    dataset: Dataset, task: AtomicTask | WorkflowTask, store: ArtefactStore
) -> tuple[Deliverable, ...]:
    """Copy the task's own files into the store, except those that are missing in the dataset."""
    kept = []
    for item in task.attachments:
        file = dataset.root / item.source
        if file.is_file():
            kept.append(store.keep_file(item.path, file.read_bytes()))
    return tuple(kept)


def _left_out_findings(task: str, left_out: Iterable[LeftOut]) -> Iterable[Finding]:
    """Yield one finding per reason, with the first name and the number of others."""
    reasons: dict[str, list[str]] = {}
    for item in left_out:
        reasons.setdefault(item.reason, []).append(item.name)
    for reason, names in reasons.items():
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        yield Finding(
            check="left-out",
            severity="warning",
            file=names[0][:200],
            task=task,
            message=f"{reason}{more}: left out.",
        )


def _read_usage(meta: ResultMeta) -> Usage:
    tokens = meta.tokens or Tokens()
    return Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        seconds=meta.duration or 0.0,
        cost_usd=meta.cost_usd,
    )
