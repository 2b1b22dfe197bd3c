"""What judging may still cost: the limits of `[budget]`, kept by whoever asks a judge."""

from collections.abc import Sequence
from time import monotonic

from inspect_ai.model import Model, get_model_info

from gta_bench.errors import UsageError
from gta_bench.records.verdicts import VerdictRow
from gta_bench.settings import BudgetSettings


class Spending:
    """Money and time since it was made; calls in flight when a limit is reached are finished."""

    def __init__(self, budget: BudgetSettings) -> None:
        self._budget = budget
        self._began = monotonic()
        self._dollars = 0.0

    def add(self, rows: Sequence[VerdictRow]) -> None:
        """Count what these verdicts cost."""
        self._dollars += sum(row.cost_usd or 0.0 for row in rows)

    def over(self) -> str | None:
        """The limit that is reached, in words; None while there is room."""
        most, hours = self._budget.cost_usd, self._budget.hours
        if most is not None and self._dollars >= most:
            return f"budget.cost_usd, ${self._dollars:.4f} of ${most:g} spent"
        if hours is not None and monotonic() - self._began >= 3600 * hours:
            return f"budget.hours, {hours:g} h"
        return None


def check_price(model: Model, budget: BudgetSettings) -> None:
    """Refuse a limit in dollars where nobody knows what a call costs."""
    if budget.cost_usd is None:
        return
    known = get_model_info(model)
    if known is None or known.cost is None:
        raise UsageError(
            f"budget.cost_usd cannot hold for {model}: its price is not known. Set input_price and "
            "output_price of its table in [models] of gta.toml, or drop the limit."
        )
