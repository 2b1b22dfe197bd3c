"""The attempts of a run's units, appended before one begins and when it ends.

Logs hold the newest attempt of a unit alone, so what was tried before it is kept here.
"""

import os
from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import to_json

from gta_bench.errors import RunError
from gta_bench.records.attempts import AttemptLine, Attempts, UnitKey, count_attempts
from gta_bench.runs.lock import locked_file
from gta_bench.runs.store import RemotePath, StorePath, append, fold_parts, parts_of, whole_file
from gta_bench.runs.unreadable import is_broken_json

ATTEMPTS = "attempts.jsonl"


def append_attempts(run: StorePath, lines: Iterable[AttemptLine]) -> None:
    """Keep lines for good; several processes may do so at once."""
    dumped = (line.model_dump_json(exclude_defaults=True).encode() for line in lines)
    append_lines(run, b"".join(line + b"\n" for line in dumped))


def append_lines(run: StorePath, data: bytes) -> None:
    """Keep whole lines as they are."""
    file = run / ATTEMPTS
    if isinstance(file, RemotePath):
        append(file, data)
        return
    fold_parts(file)
    with locked_file(file) as handle:
        size = os.lseek(handle, 0, os.SEEK_END)
        if size and os.pread(handle, 1, size - 1) != b"\n":  # a kill cut off a line
            data = b"\n" + data
        while data:
            data = data[os.write(handle, data) :]


def read_attempts(run: StorePath, task: str | None = None) -> dict[UnitKey, Attempts] | None:
    """The attempts of every unit, or of one task's; None where they were not recorded."""
    lines = read_attempt_lines(run, task)
    return None if lines is None else count_attempts(lines)


def read_attempt_lines(run: StorePath, task: str | None = None) -> list[AttemptLine] | None:
    """The lines of all attempts, or of one task's; None where they were not recorded.

    Runs of earlier versions and imported ones have no record of them.
    A line that a kill cut off is left out; any other that cannot be read is an error.
    """
    file = run / ATTEMPTS
    if not (file.is_file() or parts_of(file).is_dir()):
        return None
    with whole_file(file) as whole:
        raw = whole.read_bytes().split(b"\n")
    lines = []
    named = b"" if task is None else to_json(task)
    for number, line in enumerate(raw, 1):
        try:
            if line and named in line:
                lines.append(AttemptLine.model_validate_json(line))
        except ValidationError as exc:
            if not is_broken_json(exc):
                raise RunError(f"{file}, line {number} is no attempt of a unit.") from exc
    return lines
