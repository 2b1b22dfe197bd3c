"""A run's logs read back as units, whatever ended them: success, an error, or a kill."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSample, list_eval_logs, read_eval_log

from gta_bench.records.run import Unit, Usage
from gta_bench.runs.samples import (
    CALLS,
    STEPS,
    read_calls,
    read_steps,
    read_task,
    read_upstream,
)


class ReadUnits(NamedTuple):
    """What the logs hold, and the (task, epoch) pairs that no log has yet."""

    units: tuple[Unit, ...]
    not_run: tuple[tuple[str, int], ...]


def read_units(folder: Path, tasks: Sequence[str], epochs: int) -> ReadUnits:
    """One unit for every task and epoch that was run."""
    samples = _newest_samples(folder)
    wanted = [(task, epoch) for task in tasks for epoch in range(1, epochs + 1)]
    return ReadUnits(
        tuple(_unit(samples[key]) for key in wanted if key in samples),
        tuple(key for key in wanted if key not in samples),
    )


def finished_units(folder: Path) -> int:
    """How many units the logs hold that need not be run again."""
    return sum(sample.error is None for sample in _newest_samples(folder).values())


def _newest_samples(folder: Path) -> dict[tuple[str, int], EvalSample]:
    """The newest of each; a killed attempt leaves its log behind, and finished beats failed."""
    found: dict[tuple[str, int], EvalSample] = {}
    if not folder.is_dir():
        return found
    for info in sorted(list_eval_logs(str(folder)), key=lambda info: info.name):
        for sample in read_eval_log(info).samples or []:
            key = (str(sample.id), sample.epoch)
            if key not in found or sample.error is None or found[key].error is not None:
                found[key] = sample
    return found


def _unit(sample: EvalSample) -> Unit:
    calls = [event for event in sample.events if isinstance(event, ModelEvent)]
    failure = None
    if sample.error is not None:
        failure = sample.error.message.splitlines()[0] if sample.error.message else "error"
    return Unit(
        task=read_task(sample.metadata),
        epoch=sample.epoch,
        trace=None if failure else read_steps(sample.store.get(STEPS)),
        failure=failure,
        upstream=read_upstream(sample.metadata),
        usage=_usage(sample, calls),
        calls=read_calls(sample.store.get(CALLS)),
        models=tuple(sorted({event.output.model for event in calls if event.output.model})),
    )


def _usage(sample: EvalSample, calls: Sequence[ModelEvent]) -> Usage:
    used = list(sample.model_usage.values())
    costs = [usage.total_cost for usage in used if usage.total_cost is not None]
    return Usage(
        model_calls=sum(event.error is None for event in calls),
        input_tokens=sum(usage.input_tokens for usage in used),
        output_tokens=sum(usage.output_tokens for usage in used),
        retries=sum(event.retries or 0 for event in calls),
        seconds=sample.total_time or 0.0,
        cost_usd=sum(costs) if costs else None,
    )
