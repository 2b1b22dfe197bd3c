"""The attempts at a run's units, appended before each one begins and when it ends.

Logs contain only the newest attempt at a unit, so earlier ones are recorded here.
"""

from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import to_json

from gta_bench.errors import RunError
from gta_bench.records.attempts import AttemptLine, Attempts, UnitKey, count_attempts
from gta_bench.runs.directory import is_broken_json
from gta_bench.runs.store import StorePath, append_lines, parts_of, whole_file

ATTEMPTS = "attempts.jsonl"


def append_attempts(run: StorePath, lines: Iterable[AttemptLine]) -> None:
    """Append lines durably; several processes may do so at once."""
    dumped = (line.model_dump_json(exclude_defaults=True).encode() for line in lines)
    append_lines(run / ATTEMPTS, b"".join(line + b"\n" for line in dumped))


def read_attempts(run: StorePath, task: str | None = None) -> dict[UnitKey, Attempts] | None:
    """Count the attempts at every unit, or at one task's; None if they were not recorded."""
    lines = read_attempt_lines(run, task)
    return None if lines is None else count_attempts(lines)


def read_attempt_lines(run: StorePath, task: str | None = None) -> list[AttemptLine] | None:
    """Read the lines of all attempts, or of one task's; None if they were not recorded.

    Runs of earlier versions and imported runs have no record of them. A line that a kill cut off is
    skipped; any other unreadable line is an error.
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
                raise RunError(
                    f"{file}, line {number}: not a valid attempt. Remove the line, or restore the "
                    "file from a copy."
                ) from exc
    return lines
