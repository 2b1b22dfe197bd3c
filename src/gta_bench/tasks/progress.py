"""Word of every finished sample, for whoever shows progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from inspect_ai.hooks import Hooks, SampleEnd, hooks

Listener = Callable[[bool], None]

# Inspect instantiates hooks once, at import, so who listens is kept here.
_listeners: list[Listener] = []


@hooks(name="gta_progress", description="Tells gta of every finished sample.")
class SampleProgress(Hooks):
    """Passes on whether a sample finished well."""

    def enabled(self) -> bool:
        """Only while somebody listens."""
        return bool(_listeners)

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Tell everybody who listens."""
        for listener in _listeners:
            listener(data.sample.error is None)


@contextmanager
def sample_progress(listener: Listener) -> Iterator[None]:
    """Hear of samples that finish inside the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
