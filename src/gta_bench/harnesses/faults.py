"""Whose fault it is that a harness did not end well: its own, or that of what it was given."""

from collections.abc import Sequence

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript

from gta_bench.errors import RunError


def blame_model() -> None:
    """A harness whose model failed last has no score; the same command runs it again."""
    calls = model_calls()
    if calls and calls[-1].error is not None:
        raise RunError(f"The harness's model failed: {calls[-1].error.splitlines()[0]}")


def model_calls() -> Sequence[ModelEvent]:
    """What the task's model was asked so far."""
    return [event for event in transcript().events if isinstance(event, ModelEvent)]
