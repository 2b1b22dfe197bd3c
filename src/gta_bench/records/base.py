"""The base class of every record."""

import json
from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, WrapSerializer

_Row = TypeVar("_Row")
# A tuple, or in a copy of a record (`model_copy`) a sequence that reads its rows from files.
Rows = Annotated[
    Sequence[_Row],
    AfterValidator(tuple),
    WrapSerializer(lambda rows, dump: dump(tuple(rows))),
]


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
