"""What became of each tool call of a run."""

from typing import Literal

from gta_bench.records.base import Record

CallStatus = Literal["done", "error", "unavailable"]


class CallRecord(Record):
    """One call as the executor saw it; `backend` and `jail` say what ran."""

    tool: str
    status: CallStatus
    seconds: float
    message: str = ""
    tool_version: str = ""
    backend: str = ""
    jail: str | None = None
