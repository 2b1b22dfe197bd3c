"""Counts that metrics are shares of: those of one unit, or the sum over many units."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from gta_bench.metrics.categories import CATEGORIES
from gta_bench.metrics.pooling import total
from gta_bench.records.base import Record
from gta_bench.records.scores import CategoryCounts

Counts = TypeVar("Counts", bound=Record)


class JudgedCounts(NamedTuple):
    """What one judge gave to one or more Workflow units: how many scores there are, what they
    add up to, and how many reach the threshold."""

    roots: int = 0
    root_sum: float = 0.0
    roots_passed: int = 0
    leaves: int = 0
    leaves_passed: int = 0


def add_counts(kind: type[Counts], parts: Iterable[Counts]) -> Counts:
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
