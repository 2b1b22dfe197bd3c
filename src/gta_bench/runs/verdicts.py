"""The verdicts of a run, one line each, appended as they arrive, so a kill loses none.

In a store, which cannot append, each call of `append_verdicts` writes one object of lines.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.judges import JudgeEntry, JudgeRegistry
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import (
    explain_versions,
    is_broken_json,
    progress_folder,
    read_record,
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
)

JUDGES = "judges.json"
VERDICTS = "verdicts.jsonl"


def read_judges(run: StorePath) -> JudgeRegistry:
    """Read the judges of a run; empty if none was asked, or before there was a registry."""
    if not (run / JUDGES).is_file():
        return JudgeRegistry()
    return read_record(run / JUDGES, JudgeRegistry)


def record_judge(run: StorePath, entry: JudgeEntry) -> None:
    """Record that this judge was asked; several commands may do so at once."""
    with lock_folder(progress_folder(run), patience=inf):
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
    with join_parts(file) as whole, whole.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line == b"\n":
                continue
            try:
                row = VerdictRow.model_validate_json(line)
            except ValidationError as exc:
                if not line.endswith(b"\n"):
                    break
                if is_broken_json(exc):
                    problem = "not valid JSON. Remove the line."
                else:
                    problem = f"not a verdict of this version. {explain_versions(file)}"
                raise RunError(f"{file}, line {number}: {problem}") from exc
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
