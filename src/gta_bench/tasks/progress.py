"""Word of every finished sample, for whoever shows progress, and of the end of a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from inspect_ai.hooks import Hooks, RunEnd, SampleEnd, hooks
from inspect_ai.model import Model

Listener = Callable[[bool], None]

# Inspect instantiates hooks once, at import, so who listens is kept here.
_listeners: list[Listener] = []
_closing: list[Model] = []


@hooks(name="gta_progress", description="Tells gta of every finished sample.")
class SampleProgress(Hooks):
    """Passes on whether a sample finished well."""

    def enabled(self) -> bool:
        """Only while somebody listens."""
        return bool(_listeners or _closing)

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Tell everybody who listens."""
        for listener in _listeners:
            listener(data.sample.error is None)

    async def on_run_end(self, data: RunEnd) -> None:
        """Close connections in the loop that opened them."""
        for model in _closing:
            await model.api.aclose()


@contextmanager
def sample_progress(listener: Listener) -> Iterator[None]:
    """Hear of samples that finish inside the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def closed_afterwards(model: Model) -> Iterator[None]:
    """The model's connections end with the evaluation inside the block."""
    _closing.append(model)
    try:
        yield
    finally:
        _closing.remove(model)
