"""A place that a check points at."""

from typing import NamedTuple


class Spot(NamedTuple):
    """Where something was found and what; `file` is the dataset's main file unless given."""

    message: str
    task: str | None = None
    field: str | None = None
    file: str | None = None
