"""Every attempt of a unit is counted, and a foreign system has only so many of them.

A unit without a result is run again by the next command. A system that could end so whenever it
does not like its work would draw until it likes what it drew. So what it may have caused is
bounded: after `budget.max_attempts` the unit is scored by what the last one left.

A system that had answers of its model may have caused whatever came later, also that its account is
used up. What came before is nobody's doing but ours, and does not count.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample, transcript
from inspect_ai.solver import Generate, Solver, TaskState

from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.model import Dataset
from gta_bench.errors import NOT_BEGUN, EnvironmentProblem, was_stopped
from gta_bench.records.attempts import AttemptLine, Attempts, End
from gta_bench.records.progress import short_cause
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import Usage
from gta_bench.runs.logs import append_attempts, read_attempts, sample_usage
from gta_bench.runs.samples import UnitStore
from gta_bench.tasks.context import current_context, current_settings

# Where a sample notes that what ended it was nothing that its system could cause.
OURS = "gta_ours"
Collect = Callable[[TaskState], None]


async def note_begin(state: TaskState) -> None:
    """Keep that an attempt begins, before anything of the system runs."""
    context = current_context()
    if context is not None and context.run is not None:
        await asyncio.to_thread(append_attempts, context.run, [_line(state)])


async def note_end(sample: EvalSample) -> None:
    """Keep how an attempt ended; one that did not begin has no line, and gets none."""
    context = current_context()
    if context is None or context.run is None or sample.uuid is None:
        return
    if sample.error is not None and sample.error.message.endswith(NOT_BEGUN):
        return
    end = _end(sample)
    line = AttemptLine(
        task=str(sample.id),
        epoch=sample.epoch,
        attempt=sample.uuid,
        when=datetime.now(UTC),
        end=end,
        cause="" if sample.error is None else short_cause(sample.error.message),
        usage=Usage() if end == "finished" else _usage(sample),
    )
    await asyncio.to_thread(append_attempts, context.run, [line])


def capped(
    dataset: Dataset,
    solve: Solver,
    *,
    collect: Collect | None = None,
) -> Solver:
    """The solver of a foreign system, after whose last attempt the unit has a result.

    `collect` keeps the files that a system left.
    """

    @wraps(solve)
    async def work(state: TaskState, generate: Generate) -> TaskState:
        before = await asyncio.to_thread(_attempts, state)
        most = current_settings().budget.max_attempts
        if before.counted >= most:
            return _fail(dataset, state, before.counted, before.cause)
        try:
            return await solve(state, generate)
        except asyncio.CancelledError:
            _note_stopped(state)
            raise
        except Exception as exc:
            ours = isinstance(exc, EnvironmentProblem) and not _has_worked(state)
            state.store.set(OURS, ours)
            if ours or before.counted + 1 < most:
                _forget_work(state)
                raise
            if collect is not None:
                await asyncio.to_thread(collect, state)
            return _fail(dataset, state, before.counted + 1, short_cause(str(exc)))

    return work


def _line(state: TaskState, end: End | None = None) -> AttemptLine:
    return AttemptLine(
        task=str(state.sample_id),
        epoch=state.epoch,
        attempt=state.uuid,
        when=datetime.now(UTC),
        end=end,
    )


def _note_stopped(state: TaskState) -> None:
    """At once: whoever interrupts may not wait for the sample's own end."""
    context = current_context()
    if context is not None and context.run is not None:
        append_attempts(context.run, [_line(state, "stopped")])


def _attempts(state: TaskState) -> Attempts:
    """The attempts before this one, which is in the file already."""
    context = current_context()
    if context is None or context.run is None:
        return Attempts()
    task = str(state.sample_id)
    found = (read_attempts(context.run, task) or {}).get((task, state.epoch))
    if found is None:
        return Attempts()
    return found._replace(number=found.number - 1, counted=found.counted - 1)


def _has_worked(state: TaskState) -> bool:
    """Whether the system had an answer of its model, or of a tool."""
    asked = (event for event in transcript().events if isinstance(event, ModelEvent))
    answered = any(event.error is None and not event.pending for event in asked)
    return answered or bool(UnitStore(store=state.store).calls)


def _forget_work(state: TaskState) -> None:
    """What an attempt without a result made is not the unit's."""
    unit = UnitStore(store=state.store)
    unit.steps, unit.calls, unit.deliverables, unit.strays = None, (), (), ()


def _fail(dataset: Dataset, state: TaskState, attempts: int, cause: str) -> TaskState:
    """The unit with what its last attempt left, or as one that delivered nothing."""
    unit = UnitStore(store=state.store)
    unit.digests = task_digests(dataset, str(state.sample_id))
    unit.delivered = bool(unit.steps or unit.deliverables)
    if not unit.steps:
        reason = f"No result in {attempts} attempts; the last one: {cause}"
        unit.steps = (MalformedStep(content="", reason=reason),)
    return state


def _end(sample: EvalSample) -> End:
    if sample.error is None:
        return "finished"
    if was_stopped(sample.error.message):
        return "stopped"
    return "ours" if sample.store.get(OURS) else "failed"


def _usage(sample: EvalSample) -> Usage:
    """What an attempt without a result took."""
    events = (event for event in sample.events if isinstance(event, ModelEvent))
    return sample_usage(sample, [event for event in events if event.role is None])
