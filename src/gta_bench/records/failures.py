"""Why a step, an answer or a leaf failed: the first cause of each."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from gta_bench.records.attempts import UnitKey
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


class CauseGroup(NamedTuple):
    """The failures with one cause: their number, and the first of them."""

    counted: FailureCount
    first: Failure


@runtime_checkable
class GroupedFailures(Protocol):
    """Failures that can be counted without a record of each."""

    def group_causes(self) -> Mapping[FailureCause, CauseGroup]:
        """Return the failures of each cause that occurs."""

    def find_units(self, cause: FailureCause) -> Iterator[UnitKey]:
        """Yield the units with failures of this cause."""
