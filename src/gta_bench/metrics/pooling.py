"""Sums and shares over tasks: a pooled score weighs every step alike, not every task."""

import math
from collections.abc import Iterable


def total(values: Iterable[float]) -> float:
    """The exact sum, rounded once: the order of the tasks cannot change it."""
    return math.fsum(values)


def percent(part: float, whole: float) -> float | None:
    """`part` of `whole` in percent; None where there is nothing to measure."""
    return part / whole * 100 if whole else None
