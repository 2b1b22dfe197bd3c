"""Limits on a whole run: units in flight end, and no other begins."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.errors import WorkFailed
from gta_bench.records.progress import RunProgress
from gta_bench.settings import BudgetSettings


class Limits(NamedTuple):
    """When no more units begin: at a time, or when so much was spent."""

    deadline: datetime | None = None
    cost_usd: float | None = None

    def reached(self, spent_usd: float | None) -> str | None:
        """Which limit is reached, and how it is raised."""
        if self.deadline is not None and datetime.now(UTC) >= self.deadline:
            return "The time that budget.hours gives to a command is over"
        if self.cost_usd is not None and (spent_usd or 0.0) >= self.cost_usd:
            return f"The run has spent the ${self.cost_usd:g} of budget.cost_usd"
        return None


def limits_from(budget: BudgetSettings, started: datetime) -> Limits:
    """The settings as a command that began then knows them."""
    hours = budget.hours
    deadline = None if hours is None else started + timedelta(hours=hours)
    return Limits(deadline, budget.cost_usd)


# Inspect makes solvers by their names, so what they ask is kept here.
_checks: list[Callable[[], str | None]] = []


@contextmanager
def held(limits: Limits, progress: Callable[[], RunProgress | None]) -> Iterator[None]:
    """Units that begin inside the block are held to the limits, over all shards of the run."""

    def check() -> str | None:
        if limits == Limits():
            return None
        found = progress() if limits.cost_usd is not None else None
        return limits.reached(None if found is None else found.cost_usd)

    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


@solver
def within_limits() -> Solver:
    """A unit that begins too late fails at once, and the next command runs it."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for check in _checks:
            reached = check()
            if reached is not None:
                raise WorkFailed(f"{reached}; this unit did not begin.")
        return state

    return solve
