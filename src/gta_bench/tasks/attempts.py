"""Attempts of a unit: all are counted, and a foreign system has only a limited number of them.

The next command runs a unit without a result again. A system that could end without a result
whenever it does not like its work could retry until it likes the outcome. So failures that it may
have caused are limited: after `budget.max_attempts` the unit is scored by what the last one left.

Once a system has had replies of its model, it may have caused any later failure, even that its
account has run out of credit. Failures before that are ours, and do not count.
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
from gta_bench.errors import NOT_BEGUN, EnvironmentProblem, is_stop_note
from gta_bench.records.attempts import AttemptLine, Attempts, End
from gta_bench.records.progress import short_cause
from gta_bench.records.steps import MalformedStep
from gta_bench.records.units import Usage
from gta_bench.runs.logs import append_attempts, read_attempts, sample_usage
from gta_bench.runs.samples import UnitStore
from gta_bench.runs.store import StorePath
from gta_bench.tasks.context import current_context, current_settings

# The key under which a sample notes that its system cannot have caused its failure.
OURS = "gta_ours"


def _find_run() -> StorePath | None:
    context = current_context()
    return None if context is None else context.run


async def note_begin(state: TaskState) -> None:
    """Record that an attempt begins, before any code of the system runs."""
    if (run := _find_run()) is not None:
        await asyncio.to_thread(append_attempts, run, [_make_line(state)])


async def note_end(sample: EvalSample) -> None:
    """Record how an attempt ended; one that did not begin gets no line."""
    run = _find_run()
    if run is None or sample.uuid is None:
        return
    if sample.error is not None and sample.error.message.endswith(NOT_BEGUN):
        return
    end = _find_end(sample)
    events = (event for event in sample.events if isinstance(event, ModelEvent))
    calls = [event for event in events if event.role is None]
    line = AttemptLine(
        task=str(sample.id),
        epoch=sample.epoch,
        attempt=sample.uuid,
        when=datetime.now(UTC),
        end=end,
        cause="" if sample.error is None else short_cause(sample.error.message),
        usage=Usage() if end == "finished" else sample_usage(sample, calls),
    )
    await asyncio.to_thread(append_attempts, run, [line])


def limit_attempts(
    dataset: Dataset, solve: Solver, *, collect: Callable[[TaskState], None] | None = None
) -> Solver:
    """Wrap the solver of a foreign system so that the last attempt always gives a result.

    `collect` stores the files that the system wrote.
    """

    @wraps(solve)
    async def work(state: TaskState, generate: Generate) -> TaskState:
        before = await asyncio.to_thread(_read_before, state)
        most = current_settings().budget.max_attempts
        if before.counted >= most:
            return _fail(dataset, state, before.counted, before.cause)
        try:
            return await solve(state, generate)
        except asyncio.CancelledError:
            # At once, because an interrupted process may not wait for the end of the sample.
            if (run := _find_run()) is not None:
                append_attempts(run, [_make_line(state, "stopped")])
            raise
        except Exception as exc:
            ours = isinstance(exc, EnvironmentProblem) and not _has_worked(state)
            state.store.set(OURS, ours)
            if ours or before.counted + 1 < most:
                # The work of an attempt without a result does not belong to the unit.
                unit = UnitStore(store=state.store)
                unit.steps, unit.calls, unit.deliverables, unit.strays = None, (), (), ()
                unit.states = ()
                raise
            if collect is not None:
                await asyncio.to_thread(collect, state)
            return _fail(dataset, state, before.counted + 1, short_cause(str(exc)))

    return work


def _make_line(state: TaskState, end: End | None = None) -> AttemptLine:
    return AttemptLine(
        task=str(state.sample_id),
        epoch=state.epoch,
        attempt=state.uuid,
        when=datetime.now(UTC),
        end=end,
    )


def _read_before(state: TaskState) -> Attempts:
    """Return the attempts before this one, which is already in the file."""
    run, task = _find_run(), str(state.sample_id)
    known = {} if run is None else read_attempts(run, task) or {}
    found = known.get((task, state.epoch))
    if found is None:
        return Attempts()
    return found._replace(number=found.number - 1, counted=found.counted - 1)


def _has_worked(state: TaskState) -> bool:
    """Whether the system had a reply of its model or of a tool."""
    asked = (event for event in transcript().events if isinstance(event, ModelEvent))
    answered = any(event.error is None and not event.pending for event in asked)
    return answered or bool(UnitStore(store=state.store).calls)


def _fail(dataset: Dataset, state: TaskState, attempts: int, cause: str) -> TaskState:
    """Give the unit the work of its last attempt, or mark it as not delivered."""
    unit = UnitStore(store=state.store)
    unit.digests = task_digests(dataset, str(state.sample_id))
    unit.delivered = bool(unit.steps or unit.deliverables)
    if not unit.steps:
        reason = f"No result in {attempts} attempts; the last one: {cause}"
        unit.steps = (MalformedStep(content="", reason=reason),)
    return state


def _find_end(sample: EvalSample) -> End:
    if sample.error is None:
        return "finished"
    if is_stop_note(sample.error.message):
        return "stopped"
    return "ours" if sample.store.get(OURS) else "failed"
