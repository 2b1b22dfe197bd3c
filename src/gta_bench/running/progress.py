"""Inspect hooks that count samples, let a run be stopped, and close its connections."""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from inspect_ai.event import ModelEvent
from inspect_ai.hooks import (
    BeforeModelGenerate,
    Hooks,
    RunEnd,
    RunStart,
    SampleEnd,
    SampleStart,
    hooks,
)
from inspect_ai.log import EvalSample

from gta_bench.errors import is_stop_note
from gta_bench.records.cost import Cost, sum_costs
from gta_bench.records.progress import ShardProgress, count_causes, short_cause, sum_stops
from gta_bench.records.units import StopKind
from gta_bench.running.budget import current_share
from gta_bench.running.stopping import stop_this_loop
from gta_bench.runs.logs import models_cost
from gta_bench.runs.samples import read_unit_data
from gta_bench.tasks.attempts import note_end
from gta_bench.tasks.context import UNSCORED, SampleOutcome, current_context

_Key = tuple[str, int]
# Samples that began are reported after so many seconds, and those that ended at once.
PAUSE = 0.5


class Counter:
    """Counts a shard's samples and reports the sum; a sample that fails twice counts once."""

    def __init__(self, start: ShardProgress, tell: Callable[[ShardProgress], None]) -> None:
        self._progress = start
        self._tell = tell
        self._failed: set[_Key] = set()
        self._causes: dict[_Key, str] = {}
        self._due: asyncio.TimerHandle | None = None

    def began(self) -> None:
        """Count a sample that began."""
        self._update(running=self._progress.running + 1)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(PAUSE, self._report)

    def ended(self, key: _Key, cost: Cost, how: SampleOutcome) -> None:
        """Count a sample that ended; its cause replaces that of its last attempt."""
        self._failed.discard(key)
        if how.failed:
            self._failed.add(key)
        self._causes.pop(key, None)
        if how.cause is not None:
            self._causes[key] = how.cause
        before = self._progress
        spent = sum_costs((before.cost, cost))
        self._update(
            done=before.done + how.finished,
            failed=len(self._failed),
            running=max(0, before.running - 1),
            cost_usd=spent.known,
            unpriced=spent.unknown,
            causes=count_causes([Tally(self._causes.values())]),
            stops=sum_stops([before.stops, Tally(how.stops)]),
        )
        self._report()

    def _update(self, **changes: float | Mapping[str, int] | Mapping[StopKind, int] | None) -> None:
        self._progress = self._progress.model_copy(update={**changes, "updated": datetime.now(UTC)})

    def _report(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._tell(self._progress)


@hooks(name="gta_progress", description="Reports every sample to gta.")
class SampleProgress(Hooks):
    """Reports samples that begin and end to the run's watcher."""

    def enabled(self) -> bool:
        """Return whether a gta run is in progress."""
        return current_context() is not None

    async def on_run_start(self, data: RunStart) -> None:
        """Let a notebook or a coroutine stop the evaluation, and the budget change its limits."""
        stop_this_loop()
        context, share = current_context(), current_share.get()
        if context is not None and share is not None:
            share.follow(context.models)

    async def on_sample_start(self, data: SampleStart) -> None:
        """Notify the run's watcher."""
        context = current_context()
        if context is not None and context.watcher is not None:
            context.watcher.began()

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Notify the run's watcher, and record the attempt."""
        context, sample = current_context(), data.sample
        await note_end(sample)
        cost, share = _cost(sample), current_share.get()
        if share is not None:
            await share.end_unit(cost.known)
        if context is not None and context.watcher is not None:
            key = (str(sample.id), sample.epoch)
            context.watcher.ended(key, cost, _ended(sample))

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        """Wait until the budget allows another request."""
        share = current_share.get()
        if share is not None:
            await share.start_request()

    async def on_run_end(self, data: RunEnd) -> None:
        """Close connections in the event loop that opened them."""
        context, share = current_context(), current_share.get()
        if share is not None:
            share.unfollow()
        for model in () if context is None else context.models:
            await model.api.aclose()


def _ended(sample: EvalSample) -> SampleOutcome:
    """Return how a sample ended; a stopped unit neither finished nor failed."""
    if sample.error is None:
        stops = read_unit_data(sample.store.items()).stops
        return SampleOutcome(finished=True, cause=sample.store.get(UNSCORED), stops=stops)
    if is_stop_note(sample.error.message):
        return SampleOutcome()
    return SampleOutcome(failed=True, cause=short_cause(sample.error.message))


def _cost(sample: EvalSample) -> Cost:
    """Sum the cost of a sample's models; unknown if one of them did not report its usage."""
    calls = [event for event in sample.events if isinstance(event, ModelEvent)]
    silent = any(call.output.usage is None for call in calls if call.error is None)
    return sum_costs([models_cost(sample.model_usage.values()), Cost(unknown=silent)])
