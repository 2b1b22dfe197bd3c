"""Sums and counts of one unit or of many, from which metrics are computed."""

import math
import operator
from array import array
from collections.abc import Iterable
from functools import reduce
from typing import Any, Generic, NamedTuple, TypeVar

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.records.base import Record
from gta_bench.records.scores import Category, CategoryCounts


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


class CountSum(Generic[SummedCounts]):
    """The counts of units added by field, one unit after the other.

    Of a unit only its fractions stay in memory, because their sum is rounded once, at the end.
    """

    def __init__(self, kind: type[SummedCounts]) -> None:
        self._kind = kind
        self.units = 0
        self._counts: dict[str, int] = {}
        self._fractions: dict[str, array[float]] = {}
        self._categories: dict[str, dict[Category, CountSum[CategoryCounts]]] = {}
        for name, field in kind.model_fields.items():
            if field.annotation in (bool, int):
                self._counts[name] = 0
            elif field.annotation is float:
                self._fractions[name] = array("d")
            else:
                self._categories[name] = {one: CountSum(CategoryCounts) for one in CATEGORIES}

    def add(self, unit: SummedCounts) -> None:
        """Add the counts of a unit."""
        self.units += 1
        for name in self._counts:
            self._counts[name] += getattr(unit, name)
        for name, values in self._fractions.items():
            values.append(getattr(unit, name))
        for name, own in self._categories.items():
            for category, sums in own.items():
                sums.add(getattr(unit, name)[category])

    def count(self, name: str) -> int:
        """Return the sum of a count, or how many units have a flag."""
        return self._counts[name]

    def total(self) -> SummedCounts:
        """Return the sums; a metric of them is the pooled score.

        A flag is true if it is true for any unit.
        """
        return self._kind.model_validate(
            {
                **{
                    name: bool(value) if self._kind.model_fields[name].annotation is bool else value
                    for name, value in self._counts.items()
                },
                **{name: total(values) for name, values in self._fractions.items()},
                **{
                    name: {category: sums.total() for category, sums in own.items()}
                    for name, own in self._categories.items()
                },
            }
        )


def sum_counts(kind: type[SummedCounts], parts: Iterable[Any]) -> CountSum[SummedCounts]:
    """Add the counts of units that are of this kind."""
    sums = CountSum(kind)
    for part in parts:
        sums.add(part)
    return sums


def add_counts(kind: type[SummedCounts], parts: Iterable[SummedCounts]) -> SummedCounts:
    """Add the counts of units by field."""
    return sum_counts(kind, parts).total()
