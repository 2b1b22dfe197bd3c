"""The verdicts of a run, one line each, appended as they arrive, so a kill loses none.

In a store, which cannot append, each call of `append_verdicts` writes one object of lines.
"""

import os
import shutil
import sys
import tempfile
from array import array
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import ExitStack, contextmanager
from math import inf
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final
from weakref import finalize

from pydantic import ValidationError
from pydantic_core import to_json

from gta_bench.errors import RunError
from gta_bench.metrics.workflow_scores import UnitRows, place_rows
from gta_bench.records.attempts import UnitKey
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
# Bytes of a file of verdicts whose rows are all kept in memory, where they take five times that.
LONGEST: Final = 64 * 2**20


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
    """Read the newest row of each key; those of a long run are read whenever they are asked for.

    A score is kept if a later row for the same evidence has none. The last line may be half written
    if the machine died; any other broken line is an error.
    """
    if not has_verdicts(run):
        return {}
    with ExitStack() as stack:
        file = stack.enter_context(join_parts(run / VERDICTS))
        lines = _VerdictLines(file, run / VERDICTS)
        if file.stat().st_size <= LONGEST:
            return _keep_newest(row for _, row in lines)
        found = StoredVerdicts(lines)
        # A copy of what is in a store stays as long as it is read.
        finalize(found.units, stack.pop_all().close)
        return found


def read_task_verdicts(run: StorePath, task: str) -> dict[VerdictKey, VerdictRow]:
    """Read the newest rows of one task only, which is quick also in a long run."""
    if not has_verdicts(run):
        return {}
    with join_parts(run / VERDICTS) as file:
        lines = _VerdictLines(file, run / VERDICTS).search(to_json(task))
        return _keep_newest(row for row in lines if row.key.task == task)


def read_unit_rows(run: StorePath) -> UnitRows:
    """Read the newest rows of each unit; those of a long run when they are asked for."""
    return place_verdicts(read_verdicts(run))


def place_verdicts(found: Mapping[VerdictKey, VerdictRow]) -> UnitRows:
    """Return the verdicts of a run by unit; those of a long run are still in their file."""
    return found.units if isinstance(found, StoredVerdicts) else place_rows(found.values())


class _VerdictLines:
    """The lines of a file of verdicts; `shown` is its name in messages."""

    def __init__(self, file: Path, shown: StorePath) -> None:
        self.file = file
        self._shown = shown

    def __iter__(self) -> Iterator[tuple[int, VerdictRow]]:
        """Yield every row with the place where its line begins."""
        place = 0
        with self.file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line != b"\n":
                    try:
                        row = VerdictRow.model_validate_json(line)
                    except ValidationError as exc:
                        if not line.endswith(b"\n"):
                            return
                        raise self._broken(number, exc) from exc
                    yield place, row
                place += len(line)

    def search(self, text: bytes) -> Iterator[VerdictRow]:
        """Yield only the rows of lines that contain a text."""
        with self.file.open("rb") as stream:
            if not stream.seek(0, os.SEEK_END):
                return
            with mmap(stream.fileno(), 0, access=ACCESS_READ) as data:
                place = data.find(text)
                while place >= 0:
                    end = data.find(b"\n", place)
                    if end < 0:  # half written, or complete without its end
                        end = len(data)
                    start = data.rfind(b"\n", 0, place) + 1
                    try:
                        yield VerdictRow.model_validate_json(data[start:end])
                    except ValidationError as exc:
                        if end == len(data):
                            return
                        raise self._broken(data[:end].count(b"\n") + 1, exc) from exc
                    place = data.find(text, end)

    def _broken(self, number: int, exc: ValidationError) -> RunError:
        if is_broken_json(exc):
            problem = "not valid JSON. Remove the line."
        else:
            problem = f"not a verdict of this version. {explain_versions(self._shown)}"
        return RunError(f"{self._shown}, line {number}: {problem}")


def _keep_newest(given: Iterable[VerdictRow]) -> dict[VerdictKey, VerdictRow]:
    rows: dict[VerdictKey, VerdictRow] = {}
    for row in given:
        kept = rows.get(row.key)
        if kept is None or not _outlasts(kept, row):
            rows[row.key] = row
    return rows


class StoredUnitRows(Mapping[UnitKey, Sequence[VerdictRow]]):
    """The rows of each unit, in the order in which units have their first row.

    Only the places of lines are in memory, and the rows of the unit that was asked for last.
    `repeats` has every judge with the number of its repeats.
    """

    def __init__(self, lines: _VerdictLines) -> None:
        self._places: dict[UnitKey, array[int]] = {}
        self.repeats: dict[str, int] = {}
        for place, row in lines:
            judge = row.key.judge
            self.repeats[judge] = max(self.repeats.get(judge, 1), row.key.repeat)
            key = (sys.intern(row.key.task), row.key.epoch)
            if key not in self._places:
                self._places[key] = array("q")
            self._places[key].append(place)
        self._last: tuple[UnitKey, Sequence[VerdictRow]] | None = None
        self._stream = lines.file.open("rb")
        finalize(self, self._stream.close)

    def __getitem__(self, key: UnitKey) -> Sequence[VerdictRow]:
        if self._last is None or self._last[0] != key:
            rows = map(self._read, self._places[key])
            self._last = key, tuple(_keep_newest(rows).values())
        return self._last[1]

    def __iter__(self) -> Iterator[UnitKey]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _read(self, place: int) -> VerdictRow:
        self._stream.seek(place)
        return VerdictRow.model_validate_json(self._stream.readline())


class StoredVerdicts(Mapping[VerdictKey, VerdictRow]):
    """The verdicts of a long run by key, unit by unit."""

    def __init__(self, lines: _VerdictLines) -> None:
        self.units = StoredUnitRows(lines)

    def __getitem__(self, key: VerdictKey) -> VerdictRow:
        for row in self.units[key.task, key.epoch]:
            if row.key == key:
                return row
        raise KeyError(key)

    def __iter__(self) -> Iterator[VerdictKey]:
        return (row.key for rows in self.units.values() for row in rows)

    def __len__(self) -> int:
        return sum(map(len, self.units.values()))

    def items(self) -> ItemsView[VerdictKey, VerdictRow]:
        """Return all keys with their rows, without a search for each."""
        return _StoredItems(self)

    def values(self) -> ValuesView[VerdictRow]:
        """Return all rows, without a search for each."""
        return _StoredValues(self)


class _StoredItems(ItemsView[VerdictKey, VerdictRow]):
    def __init__(self, verdicts: StoredVerdicts) -> None:
        super().__init__(verdicts)
        self._units = verdicts.units

    def __iter__(self) -> Iterator[tuple[VerdictKey, VerdictRow]]:
        return ((row.key, row) for rows in self._units.values() for row in rows)


class _StoredValues(ValuesView[VerdictRow]):
    def __init__(self, verdicts: StoredVerdicts) -> None:
        super().__init__(verdicts)
        self._units = verdicts.units

    def __iter__(self) -> Iterator[VerdictRow]:
        return (row for rows in self._units.values() for row in rows)


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
