"""Edited requirements of a judged run: existing work is judged by a different checkpoint tree.

A run's `requirements.json` has the trees that replace those in its logs. A verdict belongs to the
text of its leaf: leaves with the same text keep theirs, even under another id, and other verdicts
are moved to `verdicts.replaced.jsonl`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gta_bench.errors import UsageError, few
from gta_bench.records.base import Record
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.runs.directory import (
    read_manifest,
    read_record,
    write_manifest,
    write_record,
)
from gta_bench.runs.store import StorePath, locked, write_whole
from gta_bench.runs.verdicts import VERDICTS, dump_rows, read_verdicts

REQUIREMENTS: Final = "requirements.json"
REPLACED: Final = "verdicts.replaced.jsonl"


class EditedTrees(Record):
    """`requirements.json`: the trees by task, and the dataset that they came from."""

    dataset_digest: str
    trees: Mapping[str, tuple[Checkpoint, ...]]


class Adopted(NamedTuple):
    """How many leaves must be judged again, of how many, and how many verdicts were kept."""

    changed: int
    leaves: int
    kept: int


def read_trees(run: StorePath) -> Mapping[str, tuple[Checkpoint, ...]]:
    """Read the trees that replace those in the logs; empty if nothing was edited."""
    file = run / REQUIREMENTS
    if not file.is_file():
        return {}
    return read_record(file, EditedTrees, "Run `gta score` with --data again.").trees


def adopt_requirements(
    run: StorePath,
    units: Iterable[WorkflowUnit],
    tasks: Mapping[str, WorkflowTask],
    dataset_digest: str,
) -> Adopted:
    """Judge the run by the requirements of these tasks from now on."""
    if not isinstance(run, Path):
        raise UsageError("--data needs a run in a local folder: copy the run here first.")
    before = {unit.task.id: unit.task for unit in units}
    # Work can be judged again only as an answer to what was asked.
    missing = [name for name in before if name not in tasks]
    other = [
        name
        for name, one in before.items()
        if name in tasks
        and (one.request, one.attachments) != (tasks[name].request, tasks[name].attachments)
    ]
    if missing or other:
        problems = [f"has no task {few(missing)}"] if missing else []
        problems += [f"has another request in task {few(other)}"] if other else []
        raise UsageError(
            f"The dataset of --data {' and '.join(problems)}. Only requirements and weights may be "
            "edited; for anything else, run the tasks again with another --out."
        )
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


def _carry(
    row: VerdictRow, before: Mapping[str, WorkflowTask], tasks: Mapping[str, WorkflowTask]
) -> VerdictRow | None:
    """Return the verdict under the leaf with the same text now; None if there is none."""
    task = row.key.task
    if task not in before:
        return row
    old = {leaf.id: leaf.requirements for leaf in before[task].leaves()}
    if row.key.leaf not in old:
        return None
    same = old[row.key.leaf]
    alike = [leaf.id for leaf in tasks[task].leaves() if leaf.requirements == same]
    if not alike:
        return None
    leaf = row.key.leaf if row.key.leaf in alike else alike[0]
    return row.model_copy(update={"key": row.key.model_copy(update={"leaf": leaf})})
