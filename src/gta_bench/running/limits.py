"""Limits on a whole run: units in flight end, and no other begins."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from inspect_ai.solver import Generate, Solver, TaskState, solver

from gta_bench.errors import NOT_BEGUN, WorkFailed
from gta_bench.records.progress import RunProgress
from gta_bench.settings import BudgetSettings
from gta_bench.tasks.attempts import note_begin
from gta_bench.tasks.context import current_context


class RunLimits(NamedTuple):
    """When no more units begin: at a time, or when so much was spent."""

    deadline: datetime | None = None
    cost_usd: float | None = None

    def reached(self, spent_usd: float | None) -> str | None:
        """Which limit is reached, and how it is raised; `spent_usd` is the known part."""
        if self.deadline is not None and datetime.now(UTC) >= self.deadline:
            return "The time that budget.hours gives to a command is over"
        if self.cost_usd is not None and (spent_usd or 0.0) >= self.cost_usd:
            return f"The run has spent the ${self.cost_usd:g} of budget.cost_usd"
        return None

    def explain(self, progress: RunProgress) -> RunProgress:
        """The progress with the limit that stopped it, if one did, and what the rest would take."""
        stopped = self.reached(progress.known_usd)
        needed = None
        spent, most = progress.known_usd or 0.0, self.cost_usd
        if most is not None and spent >= most:
            needed = spent * progress.units / progress.done if progress.done else 2 * most
        return progress.model_copy(update={"stopped": stopped, "needed_usd": needed})


def limits_from(budget: BudgetSettings, started: datetime) -> RunLimits:
    """The settings as a command that began then knows them."""
    hours = budget.hours
    deadline = None if hours is None else started + timedelta(hours=hours)
    return RunLimits(deadline, budget.cost_usd)


def limit_check(
    limits: RunLimits, progress: Callable[[], RunProgress | None]
) -> Callable[[], str | None]:
    """A function that names the limit that is reached, over all shards of the run."""

    def check() -> str | None:
        if limits == RunLimits():
            return None
        found = progress() if limits.cost_usd is not None else None
        return limits.reached(None if found is None else found.known_usd)

    return check


@solver
def within_limits() -> Solver:
    """A unit that would begin too late does not begin, and the next command runs it.

    One that begins is noted.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        context = current_context()
        check = None if context is None else context.limit_reached
        reached = None if check is None else check()
        if reached is not None:
            raise WorkFailed(f"{reached}; {NOT_BEGUN}")
        await note_begin(state)
        return state

    return solve
