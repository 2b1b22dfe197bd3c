"""Counts that metrics are shares of: those of one unit, or the sum over many units."""

import math
import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.records.base import Record
from gta_bench.records.scores import CategoryCounts


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


SummedCounts = TypeVar("SummedCounts", bound=Record)


class JudgedCounts(NamedTuple):
    """What one judge gave to one or more Workflow units: how many scores there are, what they
    add up to, and how many reach the threshold."""

    roots: int = 0
    root_sum: float = 0.0
    roots_passed: int = 0
    leaves: int = 0
    leaves_passed: int = 0


def add_counts(kind: type[SummedCounts], parts: Iterable[SummedCounts]) -> SummedCounts:
    """Add up the counts of units, field by field; a metric of the sum is the pooled score.

    Flags become true if one of them is.
    """
    units = list(parts)
    return kind.model_validate(
        {
            name: _add(field.annotation, [getattr(unit, name) for unit in units])
            for name, field in kind.model_fields.items()
        }
    )


def _add(annotation: Any, values: Sequence[Any]) -> object:
    if annotation is bool:
        return any(values)
    if annotation is int:
        return sum(values)
    if annotation is float:
        return total(values)
    return {
        category: add_counts(CategoryCounts, (value[category] for value in values))
        for category in CATEGORIES
    }
