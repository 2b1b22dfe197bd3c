"""What became of each tool call of a run."""

from typing import Literal

from gta_bench.records.base import Record

Taped = Literal["replayed", "missing"]
Disturbed = Literal["corrupted", "fault"]
CallStatus = Literal["done", "error", "unavailable"]
# The backend of a call that the measured system states, and nobody else saw.
STATED = "as stated"


class CallRecord(Record):
    """One call as the executor saw it, or as imported results state it (`STATED`).

    `backend` and `jail` say what ran.

    `category` is that of a tool that another package brought; those of ours are known by name.
    `taped`: the reply came from a tape, or was missing on it. `control`: what was done to it on
    purpose.
    """

    tool: str
    status: CallStatus
    seconds: float
    message: str = ""
    tool_version: str = ""
    backend: str = ""
    jail: str | None = None
    taped: Taped | None = None
    control: Disturbed | None = None
    category: str | None = None
