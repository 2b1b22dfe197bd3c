"""Costs in US dollars, part of which may be unknown, and their sum."""

import math
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from gta_bench.records.units import Usage
from gta_bench.records.verdicts import Scored, VerdictRow


class Cost(NamedTuple):
    """A cost of which a part may be unknown; `Cost()` is the cost of using no model.

    `known` is a lower bound, which budgets are compared with; None if no amount is known.
    `unknown` says that something was paid for at an unknown price.
    """

    known: float | None = None
    unknown: bool = False

    @property
    def total(self) -> float | None:
        """The cost to show: None if any part of it is unknown, or if no amount was recorded.

        Results of foreign systems that state no cost look like those that used no model, so a sum
        without any amount is None and not 0.
        """
        return None if self.unknown else self.known


class CostSum:
    """Adds up costs one by one; the sum is unknown as soon as one part is."""

    def __init__(self) -> None:
        self._amounts = array("d")
        self._unknown = False

    def add(self, cost: Cost) -> None:
        """Add a cost."""
        if cost.known is not None:
            self._amounts.append(cost.known)
        self._unknown |= cost.unknown

    def sum(self) -> Cost:
        """Return the sum, which is rounded once."""
        return Cost(math.fsum(self._amounts) if self._amounts else None, self._unknown)


def sum_costs(parts: Iterable[Cost]) -> Cost:
    """Add up costs; the sum is unknown as soon as one part is."""
    found = CostSum()
    for part in parts:
        found.add(part)
    return found.sum()


def make_cost(amount: float | None) -> Cost:
    """The cost of something that was paid for; None means that the price is unknown."""
    return Cost(unknown=True) if amount is None else Cost(known=amount)


def read_cost(record: Usage | VerdictRow) -> Cost:
    """The cost of a unit or a verdict; without an amount, it is free if no model was used.

    A unit used no model if it has neither model calls nor tokens; a verdict, if it has no tokens
    and no score, such as one whose call failed.
    """
    asked = record.input_tokens + record.output_tokens > 0 or (
        record.model_calls > 0 if isinstance(record, Usage) else isinstance(record.verdict, Scored)
    )
    return make_cost(record.cost_usd) if asked or record.cost_usd is not None else Cost()
