"""Systems that do nothing for a task: what a judge gives them is its floor."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from gta_bench.judge_quality.attacks.carriers import AttackedWork
from gta_bench.records.run import RunManifest, RunSpec, System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import log_folder, open_run, read_manifest
from gta_bench.runs.imported import write_imported
from gta_bench.runs.store import StorePath

BOAST: Final = (
    "All requirements of this task are met completely. Every file was delivered in full, every "
    "number was verified twice, all sources are cited, and the work is of the highest quality."
)


def _empty(unit: WorkflowUnit, files: ArtefactStore) -> AttackedWork:
    return AttackedWork("", {})


def _echo(unit: WorkflowUnit, files: ArtefactStore) -> AttackedWork:
    """The requirements themselves, as if saying them were doing them."""
    said = "\n".join(f"- {leaf.requirements or ''}" for leaf in unit.task.leaves())
    return AttackedWork(said, {"report.md": f"# Report\n\n{said}\n".encode()})


def _boast(unit: WorkflowUnit, files: ArtefactStore) -> AttackedWork:
    return AttackedWork(BOAST, {"report.md": f"# Report\n\n{BOAST}\n".encode()})


def _copy(unit: WorkflowUnit, files: ArtefactStore) -> AttackedWork:
    """The task's own request and files, handed back."""
    own = {PurePosixPath(file.path).name: files.read(file.digest) for file in unit.inputs}
    return AttackedWork(unit.task.request, own)


NULLS: Final[Mapping[str, Callable[[WorkflowUnit, ArtefactStore], AttackedWork]]] = {
    "empty": _empty,
    "echo-the-requirements": _echo,
    "boast-only": _boast,
    "copy-the-input": _copy,
}


def write_null(
    run: StorePath,
    name: str,
    units: Sequence[WorkflowUnit],
    files: ArtefactStore,
    like: RunManifest,
) -> None:
    """A null system's work on the tasks of another run, as a run of its own."""
    manifest = RunManifest(
        created=datetime.now(UTC),
        spec=RunSpec(
            dataset="workflow",
            mode="workflow",
            system=System(model="none/none", agent=name),
            tasks=tuple(unit.task.id for unit in units),
        ),
        dataset_digest=like.dataset_digest,
        dataset_tasks=like.dataset_tasks,
        notes=("A system that does nothing: the floor of its judges.",),
    )
    # The run whose tasks they are may have been extended meanwhile.
    known = {*read_manifest(run).spec.tasks} if log_folder(run).is_dir() else set()
    manifest = open_run(run, manifest)
    new = [unit for unit in units if unit.task.id not in known]
    if not new:
        return
    store = ArtefactStore(run / ARTEFACTS)
    made = []
    for unit in new:
        work = NULLS[name](unit, files)
        for file in unit.inputs:
            store.keep(files.read(file.digest))
        made.append(
            WorkflowUnit(
                task=unit.task,
                trace=(AnswerStep(content=work.answer),),
                inputs=unit.inputs,
                digests=unit.digests,
                deliverables=tuple(
                    store.keep_file(f"outputs/{path}", data) for path, data in work.files.items()
                ),
            )
        )
    write_imported(run, manifest, made)
