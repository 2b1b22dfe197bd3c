"""A new metric: a pure function of one unit."""

from gta_bench.records.units import AtomicUnit


def one_try(unit: AtomicUnit) -> float | None:
    """1 where no tool had to be called twice, 0 elsewhere; None where no tool was called."""
    called = [call.tool for call in unit.calls]
    if not called:
        return None
    return float(len(called) == len(set(called)))
