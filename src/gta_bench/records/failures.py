"""Why a step, an answer or a leaf failed: one first cause each."""

from typing import Literal

from gta_bench.records.base import Record

# In the order of docs/concepts/failures.md, which says what each means.
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
    """A place that failed: `step 2`, `task`, or the id of a leaf; `detail` has the words for it."""

    task: str
    epoch: int
    place: str
    cause: FailureCause
    detail: str = ""


class FailureCount(Record):
    """How often a cause came first, and in how many tasks."""

    cause: FailureCause
    failures: int
    tasks: int
