"""Enforce the limits of `[budget]` while judging."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

from gta_bench.judging.judge import AskingTurn
from gta_bench.records.cost import read_cost, sum_costs
from gta_bench.records.verdicts import VerdictRow
from gta_bench.settings import BudgetSettings


class Spending:
    """Counts the cost of verdicts and the time since it was created.

    Calls in flight when a limit is reached are finished. `turn` is what a call waits for before
    the limits are looked at; by default nothing.
    """

    def __init__(self, budget: BudgetSettings) -> None:
        self.turn: AskingTurn = nullcontext
        self._budget = budget
        self._began = datetime.now(UTC)
        self._dollars = 0.0

    def add(self, rows: Sequence[VerdictRow]) -> None:
        """Add the cost of these verdicts."""
        self.spend(sum_costs(map(read_cost, rows)).known or 0.0)

    def spend(self, usd: float) -> None:
        """Add a cost."""
        self._dollars += usd

    def agree(self, usd: float) -> float:
        """Note that at least so much was spent; return what is known here."""
        self._dollars = max(self._dollars, usd)
        return self._dollars

    def over(self) -> str | None:
        """Describe the limit that is reached; None before one is."""
        most, hours = self._budget.cost_usd, self._budget.hours
        if most is not None and self._dollars >= most:
            return f"budget.cost_usd, ${self._dollars:.4f} of ${most:g} spent"
        if hours is not None and datetime.now(UTC) - self._began >= timedelta(hours=hours):
            return f"budget.hours, {hours:g} h"
        return None


class SharedSpending(Spending):
    """The spending of the command that started this worker, which counts for all of them.

    `call` calls a method of the command's `Spending`.
    """

    def __init__(self, budget: BudgetSettings, call: Callable[..., Any]) -> None:
        super().__init__(budget)
        self._call = call

    def spend(self, usd: float) -> None:
        """Add a cost to that of all workers."""
        if usd:
            self._call("spend", usd)

    def over(self) -> str | None:
        """Describe the limit that all workers together have reached."""
        if self._budget.cost_usd is None and self._budget.hours is None:
            return None
        found: str | None = self._call("over")
        return found
