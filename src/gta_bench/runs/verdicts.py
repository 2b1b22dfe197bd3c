"""The verdicts of a run, a line each, appended as they come: a kill loses none that was made."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from gta_bench.errors import RunError
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow

VERDICTS = "verdicts.jsonl"


def append_verdict(run: Path, row: VerdictRow) -> None:
    """Keep a verdict for good."""
    line = row.model_dump_json().encode() + b"\n"
    handle = os.open(run / VERDICTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, line)
        os.fsync(handle)
    finally:
        os.close(handle)


def read_verdicts(run: Path) -> Mapping[VerdictKey, VerdictRow]:
    """The newest row of each key; a score is never replaced by the lack of one.

    The last line may be half written where the machine died; any other broken line is an error.
    """
    file = run / VERDICTS
    rows: dict[VerdictKey, VerdictRow] = {}
    if not file.is_file():
        return rows
    lines = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row = VerdictRow.model_validate_json(line)
        except ValidationError as exc:
            if number == len(lines):
                break
            raise RunError(f"{file}, line {number} cannot be read; remove the line.") from exc
        kept = rows.get(row.key)
        if kept is None or isinstance(row.verdict, Scored) or not isinstance(kept.verdict, Scored):
            rows[row.key] = row
    return rows
