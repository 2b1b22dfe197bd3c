"""What two versions of a dataset have in common, and what runs need to follow to the new one."""

from collections.abc import Mapping
from typing import Final, Literal

from gta_bench.records.base import Record

# What is needed for a task, from nothing to everything. `added` tasks are run, `removed` ones are
# left out.
Action = Literal["reuse", "rescore", "recheck", "judge", "run", "added", "removed"]
ACTIONS: Final[Mapping[Action, str]] = {
    "reuse": "reuse",
    "rescore": "rescore",
    "recheck": "check again",
    "judge": "judge again",
    "run": "run again",
    "added": "added",
    "removed": "removed",
}


class TaskPlan(Record):
    """What a task of the new version needs.

    `changed` names what differs: `request`, `inputs`, `tools`, `weights`, `proofs`, and leaves as
    `leaf ID`. `recheck` and `judge` are the leaves whose checks are decided again and about which
    judges are asked again.
    """

    task: str
    action: Action
    changed: tuple[str, ...] = ()
    recheck: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()


class RunNeeds(Record):
    """What a run needs to become a run of the new version.

    `units` counts units by action; those that were never finished are among `run`. `recheck` and
    `judge` count leaves of finished units. `judge_calls` are the calls for those leaves, by the
    judges and repeats that the run has. For the units that must be run, `system_calls` is an
    estimate from the run's own units (None if the system does not state its calls), and
    `new_judge_calls` is the largest number of calls that judging them needs.
    """

    run: str
    units: Mapping[Action, int]
    recheck: int
    judge: int
    judge_calls: int
    system_calls: int | None
    new_judge_calls: int

    @property
    def to_run(self) -> int:
        """How many units the system must do."""
        return self.units.get("run", 0) + self.units.get("added", 0)


class DatasetDiff(Record):
    """Two versions of a dataset, task by task, and what each run needs for the new one."""

    old: str
    new: str
    tasks: tuple[TaskPlan, ...]
    runs: tuple[RunNeeds, ...] = ()

    def count(self, action: Action) -> int:
        """How many tasks need this."""
        return sum(one.action == action for one in self.tasks)
