"""What tape and controls did to the calls of a unit."""

from itertools import pairwise

from gta_bench.records.calls import CallRecord
from gta_bench.records.controls import Disturbance
from gta_bench.records.steps import CallStep, ReplyStep, Trace
from gta_bench.records.units import AtomicUnit


def disturbance(unit: AtomicUnit) -> Disturbance:
    """Counted from the unit's call records; the trace says which of them are equal calls."""
    calls = unit.calls
    return Disturbance(
        replayed=sum(call.taped == "replayed" for call in calls),
        missing=sum(call.taped == "missing" for call in calls),
        corrupted=sum(call.control == "corrupted" for call in calls),
        faults=sum(call.control == "fault" for call in calls),
        recovered=_recovered(calls, _executed(unit.trace or ())),
        distracted=sum(call.tool not in unit.task.offered for call in calls),
    )


def _executed(trace: Trace) -> list[CallStep]:
    """The calls that reached a tool source: a reply follows them, if only an empty one."""
    return [
        step
        for step, after in pairwise(trace)
        if isinstance(step, CallStep) and isinstance(after, ReplyStep)
    ]


def _recovered(calls: tuple[CallRecord, ...], steps: list[CallStep]) -> int:
    """Faults after which an equal call came through."""
    pairs = list(zip(calls, steps, strict=False))
    return sum(
        any(
            later.status == "done" and (again.name, again.arguments) == (step.name, step.arguments)
            for later, again in pairs[index + 1 :]
        )
        for index, (call, step) in enumerate(pairs)
        if call.control == "fault"
    )
