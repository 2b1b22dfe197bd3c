"""The verdicts of a run, a line each, appended as they come: a kill loses none that was made.

In a store, which cannot append, each call of `append_verdicts` leaves one object of lines.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.judges import JudgeEntry, JudgeRegistry
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.redaction import current_redactor
from gta_bench.runs.directory import write_record
from gta_bench.runs.lock import locked_file
from gta_bench.runs.store import (
    RemotePath,
    StorePath,
    append,
    fold_parts,
    parts_of,
    whole_file,
)
from gta_bench.runs.unreadable import explain_versions, is_broken_json

JUDGES = "judges.json"


def read_judges(run: StorePath) -> JudgeRegistry:
    """The judges of a run; empty where none was asked, or before there was a registry."""
    file = run / JUDGES
    if not file.is_file():
        return JudgeRegistry()
    try:
        return JudgeRegistry.model_validate_json(file.read_bytes())
    except ValidationError as exc:
        raise RunError(f"{file}: {exc.error_count()} fields cannot be read.") from exc


def record_judge(run: StorePath, entry: JudgeEntry) -> None:
    """Keep that this judge was asked."""
    write_record(run / JUDGES, read_judges(run).with_entry(entry))


VERDICTS = "verdicts.jsonl"
_BLOCK = 65536


def append_verdicts(run: StorePath, rows: Iterable[VerdictRow]) -> None:
    """Keep verdicts for good; several threads and processes may do so at once."""
    lines = b"".join(row.model_dump_json().encode() + b"\n" for row in rows)
    lines = current_redactor().json(lines)
    file = run / VERDICTS
    if isinstance(file, RemotePath):
        if lines:
            append(file, lines)
        return
    fold_parts(file)
    with locked_file(file) as handle:
        end = _end_of_lines(handle)
        tail = os.pread(handle, os.fstat(handle).st_size - end, end)
        if tail and _is_row(tail):
            lines, end = b"\n" + lines, end + len(tail)
        os.truncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)
        while lines:
            lines = lines[os.write(handle, lines) :]
        os.fsync(handle)


def read_verdicts(run: StorePath) -> Mapping[VerdictKey, VerdictRow]:
    """The newest row of each key; on the same evidence a score outlasts the lack of one.

    The last line may be half written where the machine died; any other broken line is an error.
    """
    file = run / VERDICTS
    rows: dict[VerdictKey, VerdictRow] = {}
    if not has_verdicts(run):
        return rows
    with whole_file(file) as whole:
        lines = whole.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row = VerdictRow.model_validate_json(line)
        except ValidationError as exc:
            if number == len(lines):
                break
            raise _unreadable_line(file, number, exc) from exc
        kept = rows.get(row.key)
        if kept is None or not _outlasts(kept, row):
            rows[row.key] = row
    return rows


def _unreadable_line(file: StorePath, number: int, exc: ValidationError) -> RunError:
    place = f"{file}, line {number}"
    if is_broken_json(exc):
        return RunError(f"{place} cannot be read; remove the line.")
    return RunError(f"{place} is no verdict as they are read here. {explain_versions(file)}")


def has_verdicts(run: StorePath) -> bool:
    """Whether any judge left a verdict."""
    return (run / VERDICTS).is_file() or parts_of(run / VERDICTS).is_dir()


@contextmanager
def whole_verdicts(run: StorePath) -> Iterator[Path]:
    """The file of a run's verdicts for readers of whole lines: without a half-written last one."""
    with whole_file(run / VERDICTS) as file:
        size = file.stat().st_size
        with file.open("rb") as opened:
            end = _end_of_lines(opened.fileno())
            opened.seek(end)
            tail = opened.read()
        if end == size or _is_row(tail):
            yield file
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / VERDICTS
            shutil.copyfile(file, copy)
            os.truncate(copy, end)
            yield copy


def _is_row(line: bytes) -> bool:
    try:
        VerdictRow.model_validate_json(line)
    except ValidationError:
        return False
    return True


def _outlasts(kept: VerdictRow, newer: VerdictRow) -> bool:
    """Whether the older row still holds: it has a score for the same evidence, the newer none."""
    return (
        isinstance(kept.verdict, Scored)
        and not isinstance(newer.verdict, Scored)
        and (kept.evidence, kept.prompts) == (newer.evidence, newer.prompts)
    )


def _end_of_lines(handle: int) -> int:
    """Where the last whole line ends; what follows was cut off by a kill."""
    end = os.lseek(handle, 0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(handle, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
