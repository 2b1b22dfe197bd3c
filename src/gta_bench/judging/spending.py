"""Enforce the limits of `[budget]` while judging."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic

from inspect_ai.model import Model, get_model_info

from gta_bench.errors import UsageError
from gta_bench.records.cost import read_cost, sum_costs
from gta_bench.records.verdicts import VerdictRow
from gta_bench.settings import BudgetSettings


class Spending:
    """Counts the cost of verdicts since it was created, and the time since then or since `began`.

    Calls in flight when a limit is reached are finished.
    """

    def __init__(self, budget: BudgetSettings, began: datetime | None = None) -> None:
        self._budget = budget
        before = timedelta() if began is None else datetime.now(UTC) - began
        self._began = monotonic() - before.total_seconds()
        self._dollars = 0.0

    def add(self, rows: Sequence[VerdictRow]) -> None:
        """Add the cost of these verdicts."""
        self._dollars += sum_costs(map(read_cost, rows)).known or 0.0

    def share(self, parts: int) -> BudgetSettings:
        """Return the remaining budget divided among so many parts; hours are not divided."""
        most, hours = self._budget.cost_usd, self._budget.hours
        taken = (monotonic() - self._began) / 3600
        rest = {
            "cost_usd": None if most is None else max(0.0, most - self._dollars) / parts,
            "hours": None if hours is None else max(0.0, hours - taken),
        }
        return self._budget.model_copy(update=rest)

    def over(self) -> str | None:
        """Describe the limit that is reached; None before one is."""
        most, hours = self._budget.cost_usd, self._budget.hours
        if most is not None and self._dollars >= most:
            return f"budget.cost_usd, ${self._dollars:.4f} of ${most:g} spent"
        if hours is not None and monotonic() - self._began >= 3600 * hours:
            return f"budget.hours, {hours:g} h"
        return None


def check_price(model: Model, budget: BudgetSettings) -> None:
    """Raise UsageError if there is a limit in dollars and the model's price is unknown."""
    if budget.cost_usd is None:
        return
    known = get_model_info(model)
    if known is None or known.cost is None:
        raise UsageError(
            f"budget.cost_usd cannot be enforced: the price of {model} is unknown. Set input_price "
            "and output_price of its table in [models] of gta.toml, or remove the limit."
        )
