"""Edited requirements of a judged run: existing work is judged by another tree of checkpoints.

`requirements.json` of a run has the trees that hold instead of those in its logs. A verdict belongs
to the words of its leaf: leaves that say the same keep theirs, also under another id, and verdicts
of other words are kept apart in `verdicts.replaced.jsonl`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from gta_bench.errors import RunError, UsageError, few
from gta_bench.records.base import Record
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.runs.directory import read_manifest, write_manifest, write_record
from gta_bench.runs.lock import locked
from gta_bench.runs.store import StorePath, write_whole
from gta_bench.runs.verdicts import VERDICTS, dump_rows, read_verdicts

REQUIREMENTS: Final = "requirements.json"
REPLACED: Final = "verdicts.replaced.jsonl"


class EditedTrees(Record):
    """`requirements.json`: the trees by task, and the dataset that they came from."""

    dataset_digest: str
    trees: Mapping[str, tuple[Checkpoint, ...]]


class Adopted(NamedTuple):
    """How many leaves are to be judged again, of how many, and how many verdicts were kept."""

    changed: int
    leaves: int
    kept: int


def read_trees(run: StorePath) -> Mapping[str, tuple[Checkpoint, ...]]:
    """The trees that hold instead of those in the logs; none where nothing was edited."""
    file = run / REQUIREMENTS
    if not file.is_file():
        return {}
    try:
        return EditedTrees.model_validate_json(file.read_bytes()).trees
    except ValidationError as exc:
        raise RunError(f"{file} cannot be read; give `gta score --data` again.") from exc


def adopt_requirements(
    run: StorePath,
    units: Iterable[WorkflowUnit],
    tasks: Mapping[str, WorkflowTask],
    dataset_digest: str,
) -> Adopted:
    """Judge the run by the requirements of these tasks from now on."""
    if not isinstance(run, Path):
        raise UsageError("--data needs a run in a folder of this machine: copy it here first.")
    before = {unit.task.id: unit.task for unit in units}
    _check_same_work(before, tasks)
    with locked(run):
        rows = list(read_verdicts(run).values())
        carried = [(row, _carry(row, before, tasks)) for row in rows]
        kept = [now for _, now in carried if now is not None]
        replaced = [row for row, now in carried if now is None]
        if replaced:
            with (run / REPLACED).open("ab") as file:
                file.write(dump_rows(replaced))
        if rows:
            write_whole(run / VERDICTS, dump_rows(kept))
        trees = {name: tasks[name].checkpoints for name in before}
        write_record(run / REQUIREMENTS, EditedTrees(dataset_digest=dataset_digest, trees=trees))
        manifest = read_manifest(run)
        first = manifest.edited_from or manifest.dataset_digest
        changes = {
            "dataset_digest": dataset_digest,
            "dataset_tasks": len(tasks),
            "edited_from": None if first == dataset_digest else first,
        }
        write_manifest(run, manifest.model_copy(update=changes))
    leaves = [(name, leaf) for name in before for leaf in tasks[name].leaves()]
    known = {(name, leaf.requirements) for name, one in before.items() for leaf in one.leaves()}
    changed = sum((name, leaf.requirements) not in known for name, leaf in leaves)
    return Adopted(changed, len(leaves), len(kept))


def _check_same_work(before: Mapping[str, WorkflowTask], tasks: Mapping[str, WorkflowTask]) -> None:
    """Work can be judged anew only as an answer to what was asked."""
    missing = [name for name in before if name not in tasks]
    other = [name for name in before if name in tasks and not _same(before[name], tasks[name])]
    if missing or other:
        said = [f"has no task {few(missing)}"] if missing else []
        said += [f"asks something else in task {few(other)}"] if other else []
        raise UsageError(
            f"The dataset of --data {' and '.join(said)}. Only requirements and weights may be "
            "edited; for anything else run the tasks again in another --out."
        )


def _same(one: WorkflowTask, two: WorkflowTask) -> bool:
    return (one.request, one.attachments) == (two.request, two.attachments)


def _carry(
    row: VerdictRow, before: Mapping[str, WorkflowTask], tasks: Mapping[str, WorkflowTask]
) -> VerdictRow | None:
    """The verdict under the leaf that says the same now; None where none does."""
    task = row.key.task
    if task not in before:
        return row
    said = next((leaf for leaf in before[task].leaves() if leaf.id == row.key.leaf), None)
    if said is None:
        return None
    alike = [leaf.id for leaf in tasks[task].leaves() if leaf.requirements == said.requirements]
    if not alike:
        return None
    leaf = row.key.leaf if row.key.leaf in alike else alike[0]
    return row.model_copy(update={"key": row.key.model_copy(update={"leaf": leaf})})
