"""Sums and counts of one unit or of many, from which metrics are computed."""

import math
import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.records.base import Record
from gta_bench.records.scores import CategoryCounts


def total(values: Iterable[float]) -> float:
    """Return the exact sum, rounded once, so that it does not depend on the order of tasks."""
    return math.fsum(values)


def running_sum(values: Iterable[float]) -> float:
    """Return the sum rounded at every step, as in the published numbers.

    The built-in `sum` does so only up to Python 3.11; later versions compensate for the rounding.
    """
    return reduce(operator.add, values, 0.0)


SummedCounts = TypeVar("SummedCounts", bound=Record)


class JudgedCounts(NamedTuple):
    """The scores of one judge for one or more Workflow units: how many, their sum, and how many
    reach the threshold."""

    roots: int = 0
    root_sum: float = 0.0
    roots_passed: int = 0
    leaves: int = 0
    leaves_passed: int = 0


def add_counts(kind: type[SummedCounts], parts: Iterable[SummedCounts]) -> SummedCounts:
    """Add the counts of units by field; a metric of the sum is the pooled score.

    A flag is true if it is true for any unit.
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
