"""Sums and shares over tasks: a pooled score weighs every step alike, not every task."""

import math
import operator
from collections.abc import Iterable
from functools import reduce


def total(values: Iterable[float]) -> float:
    """The exact sum, rounded once: the order of the tasks cannot change it."""
    return math.fsum(values)


def running_sum(values: Iterable[float]) -> float:
    """The sum rounded at every step, as published digits were made.

    The built-in one does so up to Python 3.11 only: later ones compensate for the rounding.
    """
    return reduce(operator.add, values, 0.0)


def percent(part: float, whole: float) -> float | None:
    """`part` of `whole` in percent; None where there is nothing to measure."""
    return part / whole * 100 if whole else None
