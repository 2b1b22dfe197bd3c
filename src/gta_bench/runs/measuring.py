"""A user's own metric over the units of a stored run."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from statistics import fmean
from typing import Any, cast

from gta_bench.errors import UsageError
from gta_bench.records.scores import Measured
from gta_bench.records.units import AtomicUnit, WorkflowUnit

ENTRY_POINTS = "gta_bench.metrics"

# A number for a unit, or None where the metric says nothing about it.
Metric = Callable[[Any], float | None]


def load_metric(name: str) -> Metric:
    """A metric that an installed package brings, or `pkg.mod:function`."""
    known = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    module, colon, attribute = known.get(name, name).partition(":")
    choices = ", ".join([*sorted(known), "`pkg.mod:function`"])
    if not (module and colon and attribute):
        raise UsageError(f"Unknown metric {name!r}. Known metrics: {choices}.")
    try:
        return cast(Metric, getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as exc:
        raise UsageError(f"Cannot load metric {name!r}: {exc}. Known: {choices}.") from exc


def measure(
    units: Sequence[AtomicUnit] | Sequence[WorkflowUnit], metric: Metric, *, name: str, n_units: int
) -> Measured:
    """The metric's mean over the units that it says something about.

    A unit that failed through no fault of the system is not shown to the metric.
    """
    found = {
        f"{unit.task.id}.{unit.epoch}": value
        for unit in units
        if unit.failure is None and (value := metric(unit)) is not None
    }
    mean = fmean(found.values()) if found else None
    return Measured(name=name, value=mean, n=len(found), n_units=n_units, units=found)
