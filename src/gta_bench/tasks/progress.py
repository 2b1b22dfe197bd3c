"""Word of every sample that begins and ends, for whoever shows progress, and of a run's end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

from inspect_ai.hooks import Hooks, RunEnd, SampleEnd, SampleStart, hooks
from inspect_ai.log import EvalSample
from inspect_ai.model import Model

from gta_bench.records.progress import ShardProgress

Key = tuple[str, int]
# Seconds between two words of samples that only began; those that ended are told at once.
PAUSE = 0.5


class Watcher(Protocol):
    """Hears of samples."""

    def began(self) -> None:
        """A sample began."""

    def ended(self, key: Key, cost_usd: float | None, *, well: bool) -> None:
        """A sample ended."""


# Inspect instantiates hooks once, at import, so who listens is kept here.
_watchers: list[Watcher] = []
_closing: list[Model] = []


class Counter:
    """Counts a shard's samples and tells the sum; a sample that fails twice failed once."""

    def __init__(self, start: ShardProgress, tell: Callable[[ShardProgress], None]) -> None:
        self._progress = start
        self._tell = tell
        self._failed: set[Key] = set()
        self._told = 0.0

    def began(self) -> None:
        """One more is running."""
        self._update(running=self._progress.running + 1)
        if time.monotonic() - self._told > PAUSE:
            self._say()

    def ended(self, key: Key, cost_usd: float | None, *, well: bool) -> None:
        """One less is running."""
        if well:
            self._failed.discard(key)
        else:
            self._failed.add(key)
        before = self._progress
        costs = [cost for cost in (before.cost_usd, cost_usd) if cost is not None]
        self._update(
            done=before.done + well,
            failed=len(self._failed),
            running=max(0, before.running - 1),
            cost_usd=sum(costs) if costs else None,
        )
        self._say()

    def _update(self, **changes: float | None) -> None:
        self._progress = self._progress.model_copy(update={**changes, "updated": datetime.now(UTC)})

    def _say(self) -> None:
        self._told = time.monotonic()
        self._tell(self._progress)


@hooks(name="gta_progress", description="Tells gta of every sample.")
class SampleProgress(Hooks):
    """Passes on what begins, and whether it ended well."""

    def enabled(self) -> bool:
        """Only while somebody listens."""
        return bool(_watchers or _closing)

    async def on_sample_start(self, data: SampleStart) -> None:
        """Tell everybody who listens."""
        for watcher in _watchers:
            watcher.began()

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Tell everybody who listens."""
        sample = data.sample
        for watcher in _watchers:
            watcher.ended((str(sample.id), sample.epoch), _cost(sample), well=sample.error is None)

    async def on_run_end(self, data: RunEnd) -> None:
        """Close connections in the loop that opened them."""
        for model in _closing:
            await model.api.aclose()


def _cost(sample: EvalSample) -> float | None:
    costs = [one.total_cost for one in sample.model_usage.values() if one.total_cost is not None]
    return sum(costs) if costs else None


@contextmanager
def sample_progress(watcher: Watcher) -> Iterator[None]:
    """Hear of samples that begin and end inside the block."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@contextmanager
def closed_afterwards(model: Model) -> Iterator[None]:
    """The model's connections end with the evaluation inside the block."""
    _closing.append(model)
    try:
        yield
    finally:
        _closing.remove(model)
