"""The verdicts of a run, one line each, appended as they arrive, so a kill loses none.

In a store, which cannot append, each call of `append_verdicts` writes one object of lines.

Existing work can be judged by edited requirements. A run's `requirements.json` has the trees that
replace those in its logs. A verdict belongs to the text of its leaf: leaves with the same text keep
theirs, even under another id, and other verdicts are moved to `verdicts.replaced.jsonl`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from gta_bench.errors import RunError, UsageError, join_first
from gta_bench.records.base import Record
from gta_bench.records.judges import JudgeEntry, JudgeRegistry
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import (
    explain_versions,
    is_broken_json,
    read_manifest,
    read_record,
    write_manifest,
    write_record,
)
from gta_bench.runs.store import (
    StorePath,
    append_lines,
    end_of_lines,
    is_json,
    join_parts,
    lock_folder,
    parts_of,
    write_bytes_atomically,
)

JUDGES = "judges.json"
VERDICTS = "verdicts.jsonl"


def read_judges(run: StorePath) -> JudgeRegistry:
    """Read the judges of a run; empty if none was asked, or before there was a registry."""
    if not (run / JUDGES).is_file():
        return JudgeRegistry()
    return read_record(run / JUDGES, JudgeRegistry)


def record_judge(run: StorePath, entry: JudgeEntry) -> None:
    """Record that this judge was asked."""
    write_record(run / JUDGES, read_judges(run).with_entry(entry))


def append_verdicts(run: StorePath, rows: Iterable[VerdictRow]) -> None:
    """Append verdicts durably; several threads and processes may do so at once."""
    append_lines(run / VERDICTS, current_redactor().json(dump_rows(rows)))


def dump_rows(rows: Iterable[VerdictRow]) -> bytes:
    """Return verdicts as JSON lines."""
    return b"".join(row.model_dump_json().encode() + b"\n" for row in rows)


def read_verdicts(run: StorePath) -> Mapping[VerdictKey, VerdictRow]:
    """Read the newest row of each key.

    A score is kept if a later row for the same evidence has none. The last line may be half written
    if the machine died; any other broken line is an error.
    """
    file = run / VERDICTS
    rows: dict[VerdictKey, VerdictRow] = {}
    if not has_verdicts(run):
        return rows
    with join_parts(file) as whole:
        lines = whole.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row = VerdictRow.model_validate_json(line)
        except ValidationError as exc:
            if number == len(lines):
                break
            if is_broken_json(exc):
                raise RunError(f"{file}, line {number}: not valid JSON. Remove the line.") from exc
            raise RunError(
                f"{file}, line {number}: not a verdict of this version. {explain_versions(file)}"
            ) from exc
        kept = rows.get(row.key)
        if kept is None or not _outlasts(kept, row):
            rows[row.key] = row
    return rows


def has_verdicts(run: StorePath) -> bool:
    """Whether the run has any verdict."""
    return (run / VERDICTS).is_file() or parts_of(run / VERDICTS).is_dir()


@contextmanager
def open_whole_verdicts(run: StorePath) -> Iterator[Path]:
    """Yield the file of a run's verdicts, or a copy without a half-written last line."""
    with join_parts(run / VERDICTS) as file:
        with file.open("rb") as stream:
            end = stream.seek(end_of_lines(stream))
            tail = stream.read()
        if not tail or is_json(tail):
            yield file
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / VERDICTS
            shutil.copyfile(file, copy)
            os.truncate(copy, end)
            yield copy


def _outlasts(kept: VerdictRow, newer: VerdictRow) -> bool:
    """Whether the older row stays: it has a score for the same evidence, the newer has none."""
    return (
        isinstance(kept.verdict, Scored)
        and not isinstance(newer.verdict, Scored)
        and (kept.evidence, kept.prompts) == (newer.evidence, newer.prompts)
    )


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
        problems = [f"has no task {join_first(missing)}"] if missing else []
        problems += [f"has another request in task {join_first(other)}"] if other else []
        raise UsageError(
            f"The dataset of --data {' and '.join(problems)}. Only requirements and weights may be "
            "edited; for anything else, run the tasks again with another --out."
        )
    with lock_folder(run):
        rows = list(read_verdicts(run).values())
        carried = [(row, _carry(row, before, tasks)) for row in rows]
        kept = [now for _, now in carried if now is not None]
        replaced = [row for row, now in carried if now is None]
        if replaced:
            with (run / REPLACED).open("ab") as file:
                file.write(dump_rows(replaced))
        if rows:
            write_bytes_atomically(run / VERDICTS, dump_rows(kept))
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
