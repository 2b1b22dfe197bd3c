"""Runs that are made for judges: null systems for a judge's floor, and bridge sets.

A null system does nothing for a task; what a judge gives it is the judge's floor. A bridge set is a
copy of finished units without verdicts, to compare judges on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from gta_bench.errors import RunError
from gta_bench.judge_quality.attacks.carriers import AttackedWork
from gta_bench.judge_quality.attacks.corpus import build_manifest, build_unit
from gta_bench.metrics.labels import shuffle_units
from gta_bench.metrics.table import JUDGED
from gta_bench.records.judges import Floor, Floors
from gta_bench.records.run import RunManifest
from gta_bench.records.units import WorkflowUnit
from gta_bench.running.judge_run import Judging, Watching, judge_run
from gta_bench.runs.artefacts import ARTEFACTS, ArtefactStore
from gta_bench.runs.directory import (
    log_folder,
    null_folder,
    open_run,
    read_floors,
    read_manifest,
    write_floors,
)
from gta_bench.runs.imported import write_imported
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.store import StorePath
from gta_bench.tasks.judging import find_judgeable_units

BOAST: Final = (
    "All requirements of this task are met completely. Every file was delivered in full, every "
    "number was verified twice, all sources are cited, and the work is of the highest quality."
)


def _echo(unit: WorkflowUnit, files: ArtefactStore) -> AttackedWork:
    """Repeat the requirements, as if that met them."""
    said = "\n".join(f"- {leaf.requirements or ''}" for leaf in unit.task.leaves())
    return AttackedWork(said, {"report.md": f"# Report\n\n{said}\n".encode()})


def _copy(unit: WorkflowUnit, files: ArtefactStore) -> AttackedWork:
    """Hand back the task's own request and files."""
    own = {PurePosixPath(file.path).name: files.read(file.digest) for file in unit.inputs}
    return AttackedWork(unit.task.request, own)


NULLS: Final[Mapping[str, Callable[[WorkflowUnit, ArtefactStore], AttackedWork]]] = {
    "empty": lambda unit, files: AttackedWork("", {}),
    "echo-the-requirements": _echo,
    "boast-only": lambda unit, files: AttackedWork(
        BOAST, {"report.md": f"# Report\n\n{BOAST}\n".encode()}
    ),
    "copy-the-input": _copy,
}


def measure_floor(run: StorePath, judging: Judging, watching: Watching) -> Floors:
    """Judge every null system on the run's tasks, and store the floors with the run's scores."""
    manifest = read_manifest(run)
    units = [unit for unit in find_judgeable_units(run).values() if unit.epoch == 1]
    files = ArtefactStore(run / ARTEFACTS)
    found: list[Floor] = []
    for system in NULLS:
        folder = null_folder(run, system)
        _write_null(folder, system, units, files, manifest)
        names = [one.judge for one in judge_run(folder, judging, watching)]
        for table in score_workflow_run(folder, judging.settings).judges:
            if table.judge in names:
                scores = table.strict.model_dump(include={*JUDGED, "n", "n_units"})
                found.append(Floor(judge=table.judge, system=system, **scores))
    judges = {floor.judge for floor in found}
    kept = [floor for floor in read_floors(run).rows if floor.judge not in judges]
    floors = Floors(rows=(*kept, *found))
    write_floors(run, floors)
    return floors


def _write_null(
    run: StorePath,
    system: str,
    units: Sequence[WorkflowUnit],
    files: ArtefactStore,
    like: RunManifest,
) -> None:
    """Write a null system's work on the tasks of another run as a run of its own."""
    manifest = build_manifest(
        system,
        [unit.task.id for unit in units],
        digest=like.dataset_digest,
        note="A system that does nothing: the floor of its judges.",
    ).model_copy(update={"dataset_tasks": like.dataset_tasks})
    # The original run may have been extended since the floor was last measured.
    known = {*read_manifest(run).spec.tasks} if log_folder(run).is_dir() else set()
    manifest = open_run(run, manifest)
    new = [unit for unit in units if unit.task.id not in known]
    if new:
        store = ArtefactStore(run / ARTEFACTS)
        write_imported(run, manifest, list(_null_units(system, new, files, store)))


def _null_units(
    system: str, units: Sequence[WorkflowUnit], files: ArtefactStore, store: ArtefactStore
) -> Iterator[WorkflowUnit]:
    for unit in units:
        states = tuple(state.untouched() for state in unit.states)
        for file in (*unit.inputs, *(file for state in states for file in state.before.files)):
            store.keep(files.read(file.digest))
        made = build_unit(unit.task, NULLS[system](unit, files), store)
        given = {"inputs": unit.inputs, "digests": unit.digests, "states": states}
        yield made.model_copy(update=given)


def make_bridge(run: StorePath, out: StorePath, *, count: int | None, seed: int) -> int:
    """Copy randomly chosen units with their files as a run of their own; return its leaf count."""
    first = [unit for unit in find_judgeable_units(run).values() if unit.epoch == 1]
    units = shuffle_units(first, seed=seed)[:count]
    if not units:
        raise RunError(f"{run} has no finished unit to copy. Finish the run first.")
    stored = read_manifest(run).with_spec(tasks=tuple(unit.task.id for unit in units), epochs=1)
    note = "A bridge set: the same works before every judge."
    manifest = stored.model_copy(update={"notes": (note,), "growth": ()})
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; choose another --out.")
    open_run(out, manifest)
    files, store = ArtefactStore(run / ARTEFACTS), ArtefactStore(out / ARTEFACTS)
    for unit in units:
        stated = [file for state in unit.states for file in state.files]
        for file in (*unit.deliverables, *unit.inputs, *stated):
            store.keep(files.read(file.digest))
    write_imported(out, manifest, units)
    return sum(len(list(unit.task.leaves())) for unit in units)
