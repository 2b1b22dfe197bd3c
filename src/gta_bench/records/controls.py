"""What tape and controls did to a unit, and what came of it."""

from gta_bench.records.base import Record


class Disturbance(Record):
    """Calls of one unit by what stood between them and the tools.

    `recovered`: faults after which the system made the same call again and got a reply.
    `distracted`: calls of tools that the task does not list.
    """

    replayed: int = 0
    missing: int = 0
    corrupted: int = 0
    faults: int = 0
    recovered: int = 0
    distracted: int = 0


class TaskEffect(Record):
    """One unit with and without a control; values are its share of the strict AnsAcc+I, 0 to 1."""

    task: str
    epoch: int
    plain: float
    controlled: float
    disturbance: Disturbance

    @property
    def solved(self) -> tuple[bool, bool]:
        """Whether it is solved without and with the control."""
        return self.plain == 1, self.controlled == 1

    @property
    def kept(self) -> bool:
        """Solved without and with the control."""
        return self.solved == (True, True)

    @property
    def lost(self) -> bool:
        """Solved without the control only."""
        return self.solved == (True, False)

    @property
    def hit(self) -> bool:
        """Whether the control did something to the unit."""
        did = self.disturbance
        return bool(did.corrupted or did.faults or did.distracted)


class ControlEffect(Record):
    """Two runs of one system, unit by unit: what is solved without the control and with it.

    Solved means a strict value of 1. `lost` are solved only without it, `won` only with it;
    `hit` are the units that it did something to, and `hit_solved` those of them that were solved
    without it and still are.
    """

    units: int
    solved_plain: int
    solved_controlled: int
    kept: int
    lost: int
    won: int
    hit: int
    hit_solved_plain: int
    hit_kept: int
    disturbance: Disturbance
    tasks: tuple[TaskEffect, ...]
