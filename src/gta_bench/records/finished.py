"""What a user may say about finished results, beside the results themselves."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from gta_bench.records.base import Record

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Tokens(Record):
    """Tokens of all model calls together."""

    input: Count = 0
    output: Count = 0


class ResultMeta(Record):
    """`meta.json` of a task's folder, or of the folder above for all tasks; every key is optional.

    Times need an offset: `2026-11-15T09:30:00Z`.
    """

    started: AwareDatetime | None = Field(None, description="When the system got the task.")
    finished: AwareDatetime | None = Field(None, description="When it delivered.")
    seconds: Amount | None = Field(None, description="How long it took; else from the times.")
    cost_usd: Amount | None = Field(None, description="What it cost, in US dollars.")
    model: str | None = Field(None, description="The model that was asked.")
    harness: str | None = Field(None, description="The agent system, such as `Manus`.")
    harness_version: str | None = Field(None, description="Its version.")
    tokens: Tokens | None = Field(None, description="Tokens of all model calls together.")

    @property
    def duration(self) -> float | None:
        """Seconds, as stated or between the two times."""
        if self.seconds is not None or self.started is None or self.finished is None:
            return self.seconds
        return max(0.0, (self.finished - self.started).total_seconds())
