"""Something noticed in benchmark files that a reader of the scores should know."""

from typing import Literal

from gta_bench.records.base import Record

Severity = Literal["error", "warning", "note"]


class Finding(Record):
    """One quirk or fault, with its place.

    `error`: the task cannot be measured as it is. `warning`: scores are affected. `note`: harmless.
    """

    check: str
    severity: Severity
    file: str
    message: str
    task: str | None = None
    field: str | None = None
