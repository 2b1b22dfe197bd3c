"""The base of every record: frozen, and no unknown key."""

import json

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Immutable data with a JSON form; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_json(value: object) -> bool:
    """Whether a record's file can hold it; scripted models of tests are given functions."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
