"""The base of every record: frozen, and no unknown key."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Immutable data with a JSON form; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
