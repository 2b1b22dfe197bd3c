"""The base class of every record."""

import json

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Immutable data with a JSON form; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_json(value: object) -> bool:
    """Whether a value can be stored as JSON; tests give functions to scripted models."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
