"""Why a step, an answer or a leaf failed: the first cause of each."""

from typing import Literal

from gta_bench.records.base import Record

# In the order of docs/concepts/failures.md, which explains them.
FailureCause = Literal[
    "infrastructure",
    "judge unscored",
    "format",
    "wrong tool",
    "arguments",
    "tool unavailable",
    "tool error",
    "context",
    "turn limit",
    "missing deliverable",
    "wrong content",
]


class Failure(Record):
    """A failure; `place` is `step 2`, `task`, or the id of a leaf, and `detail` describes it."""

    task: str
    epoch: int
    place: str
    cause: FailureCause
    detail: str = ""


class FailureCount(Record):
    """How often a cause was the first one, and in how many tasks."""

    cause: FailureCause
    failures: int
    tasks: int
