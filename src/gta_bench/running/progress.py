"""Word of every sample that begins and ends, for whoever shows progress, and of a run's end."""

import time
from collections import Counter as Tally
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from inspect_ai.event import ModelEvent
from inspect_ai.hooks import Hooks, RunEnd, SampleEnd, SampleStart, hooks
from inspect_ai.log import EvalSample

from gta_bench.errors import was_stopped
from gta_bench.records.cost import Cost, sum_costs
from gta_bench.records.progress import ShardProgress, count_causes, short_cause, sum_stops
from gta_bench.records.units import StopKind
from gta_bench.runs.logs import models_cost
from gta_bench.runs.samples import read_unit_data
from gta_bench.tasks.attempts import note_end
from gta_bench.tasks.context import UNSCORED, SampleOutcome, current_context

_Key = tuple[str, int]
# Seconds between two words of samples that only began; those that ended are told at once.
PAUSE = 0.5


class Counter:
    """Counts a shard's samples and tells the sum; a sample that fails twice failed once."""

    def __init__(self, start: ShardProgress, tell: Callable[[ShardProgress], None]) -> None:
        self._progress = start
        self._tell = tell
        self._failed: set[_Key] = set()
        self._causes: dict[_Key, str] = {}
        self._counts: Tally[str] = Tally()
        self._told = 0.0

    def began(self) -> None:
        """One more is running."""
        self._update(running=self._progress.running + 1)
        if time.monotonic() - self._told > PAUSE:
            self._say()

    def ended(self, key: _Key, cost: Cost, how: SampleOutcome) -> None:
        """One less is running."""
        self._failed.discard(key)
        if how.failed:
            self._failed.add(key)
        self._note(key, how.cause)
        before = self._progress
        spent = sum_costs((before.cost, cost))
        self._update(
            done=before.done + how.finished,
            failed=len(self._failed),
            running=max(0, before.running - 1),
            cost_usd=spent.known,
            unpriced=spent.unknown,
            causes=count_causes([self._counts]),
            stops=sum_stops([before.stops, Tally(how.stops)]),
        )
        self._say()

    def _note(self, key: _Key, cause: str | None) -> None:
        """Count the cause of a unit in the place of its last one."""
        before = self._causes.pop(key, None)
        if before is not None:
            self._counts[before] -= 1
            self._counts += Tally()  # without those that are zero
        if cause is not None:
            self._causes[key] = cause
            self._counts[cause] += 1

    def _update(self, **changes: float | Mapping[str, int] | Mapping[StopKind, int] | None) -> None:
        self._progress = self._progress.model_copy(update={**changes, "updated": datetime.now(UTC)})

    def _say(self) -> None:
        self._told = time.monotonic()
        self._tell(self._progress)


@hooks(name="gta_progress", description="Tells gta of every sample.")
class SampleProgress(Hooks):
    """Passes on what begins, and whether it ended well."""

    def enabled(self) -> bool:
        """Only during a run of ours."""
        return current_context() is not None

    async def on_sample_start(self, data: SampleStart) -> None:
        """Tell the run's watcher."""
        context = current_context()
        if context is not None and context.watcher is not None:
            context.watcher.began()

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Tell the run's watcher, and note the attempt."""
        context, sample = current_context(), data.sample
        await note_end(sample)
        if context is not None and context.watcher is not None:
            key = (str(sample.id), sample.epoch)
            context.watcher.ended(key, _cost(sample), _ended(sample))

    async def on_run_end(self, data: RunEnd) -> None:
        """Close connections in the loop that opened them."""
        context = current_context()
        for model in () if context is None else context.models:
            await model.api.aclose()


def _ended(sample: EvalSample) -> SampleOutcome:
    """A unit that was stopped neither finished nor failed."""
    if sample.error is None:
        stops = read_unit_data(sample.store.items()).stops
        return SampleOutcome(finished=True, cause=sample.store.get(UNSCORED), stops=stops)
    noted = sample.error.message
    return (
        SampleOutcome()
        if was_stopped(noted)
        else SampleOutcome(failed=True, cause=short_cause(noted))
    )


def _cost(sample: EvalSample) -> Cost:
    """What the sample's models cost; unknown if one of them replied without saying its usage."""
    calls = [event for event in sample.events if isinstance(event, ModelEvent)]
    silent = any(call.output.usage is None for call in calls if call.error is None)
    return sum_costs([models_cost(sample.model_usage.values()), Cost(unknown=silent)])
