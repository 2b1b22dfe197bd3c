"""Findings in benchmark files that a reader of the scores should know."""

from typing import Literal

from gta_bench.records.base import Record

Severity = Literal["error", "warning", "note"]


class Finding(Record):
    """One oddity or error in a file, with its location.

    `error`: the task cannot be measured. `warning`: scores are affected. `note`: harmless.
    """

    check: str
    severity: Severity
    file: str
    message: str
    task: str | None = None
    field: str | None = None
