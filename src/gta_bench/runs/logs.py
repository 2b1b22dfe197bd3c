"""A run's logs read back as units, whatever ended them: success, an error, or a kill."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalSample,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
    write_eval_log,
)

from gta_bench.records.run import Unit, Usage, WorkflowUnit
from gta_bench.runs.samples import (
    CALLS,
    DELIVERABLES,
    INPUTS,
    STEPS,
    STRAYS,
    USAGE,
    read_calls,
    read_deliverables,
    read_steps,
    read_task,
    read_upstream,
    read_workflow_task,
)
from gta_bench.runs.store import StorePath, reaching


class ReadUnits(NamedTuple):
    """What the logs hold, and the (task, epoch) pairs that no log has yet."""

    units: tuple[Unit, ...]
    not_run: tuple[tuple[str, int], ...]


class ReadWorkflowUnits(NamedTuple):
    """What the logs of a Workflow run hold, and the (task, epoch) pairs that no log has yet."""

    units: tuple[WorkflowUnit, ...]
    not_run: tuple[tuple[str, int], ...]


def read_units(folder: StorePath, tasks: Sequence[str], epochs: int) -> ReadUnits:
    """One unit for every task and epoch that was run."""
    samples, not_run = _samples(folder, tasks, epochs)
    return ReadUnits(tuple(_unit(sample) for sample in samples), not_run)


def read_workflow_units(folder: StorePath, tasks: Sequence[str], epochs: int) -> ReadWorkflowUnits:
    """One unit for every Workflow task and epoch that was run."""
    samples, not_run = _samples(folder, tasks, epochs)
    return ReadWorkflowUnits(tuple(_workflow_unit(sample) for sample in samples), not_run)


def read_stores(folder: StorePath) -> dict[tuple[str, int], dict[str, Any]]:
    """What every finished sample keeps, by task and epoch."""
    return {
        key: sample.store for key, sample in _newest_samples(folder).items() if sample.error is None
    }


def finished_units(folder: StorePath) -> int:
    """How many units the logs hold that need not be run again."""
    return sum(sample.error is None for sample in _newest_samples(folder).values())


class Said(NamedTuple):
    """What a unit's system was told and what it said itself, in its own model calls."""

    task: str
    epoch: int
    told: str
    by_tools: str
    said: str


def read_said(folder: StorePath) -> Iterator[Said]:
    """The messages of every unit; a judge's calls are left out."""
    for sample in _newest_samples(folder, resolve_attachments=True).values():
        told: dict[str, None] = {}
        tools: dict[str, None] = {}
        said: dict[str, None] = {sample.output.completion: None}
        for event in _model_calls(sample):
            for message in event.input:
                kept = {"tool": tools, "assistant": said}.get(message.role, told)
                kept[message.text] = None
            said[event.output.completion] = None
        yield Said(str(sample.id), sample.epoch, *("\n".join(one) for one in (told, tools, said)))


def copy_logs(folder: StorePath, to: StorePath) -> None:
    """The logs once more as plain JSON, which any reader can check before unpacking."""
    for info in list_eval_logs(str(folder)):
        name = unquote(info.name).rsplit("/", 1)[-1].rpartition(".")[0]
        write_eval_log(read_eval_log(info), str(to / f"{name}.json"), format="json")


def log_of(folder: StorePath, task: str, epoch: int) -> str | None:
    """The name of the newest log that holds the unit."""
    if not folder.is_dir():
        return None
    with reaching(folder):
        for info in sorted(list_eval_logs(str(folder)), key=lambda info: info.name, reverse=True):
            for one in read_eval_log_sample_summaries(info):
                if (str(one.id), one.epoch) == (task, epoch):
                    return unquote(info.name).rsplit("/", 1)[-1]
    return None


def _samples(
    folder: StorePath, tasks: Sequence[str], epochs: int
) -> tuple[list[EvalSample], tuple[tuple[str, int], ...]]:
    found = _newest_samples(folder)
    wanted = [(task, epoch) for task in tasks for epoch in range(1, epochs + 1)]
    return (
        [found[key] for key in wanted if key in found],
        tuple(key for key in wanted if key not in found),
    )


def _newest_samples(
    folder: StorePath, *, resolve_attachments: bool = False
) -> dict[tuple[str, int], EvalSample]:
    """The newest of each; a killed attempt leaves its log behind, and finished beats failed."""
    found: dict[tuple[str, int], EvalSample] = {}
    if not folder.is_dir():
        return found
    with reaching(folder):
        for info in sorted(list_eval_logs(str(folder)), key=lambda info: info.name):
            log = read_eval_log(info, resolve_attachments=resolve_attachments)
            for sample in log.samples or []:
                key = (str(sample.id), sample.epoch)
                if key not in found or sample.error is None or found[key].error is not None:
                    found[key] = sample
    return found


def _unit(sample: EvalSample) -> Unit:
    calls = _model_calls(sample)
    failure = _failure(sample)
    return Unit(
        task=read_task(sample.metadata),
        epoch=sample.epoch,
        trace=None if failure else read_steps(sample.store.get(STEPS)),
        failure=failure,
        upstream=read_upstream(sample.metadata),
        usage=_usage(sample, calls),
        calls=read_calls(sample.store.get(CALLS)),
        models=_models(calls),
    )


def _workflow_unit(sample: EvalSample) -> WorkflowUnit:
    calls = _model_calls(sample)
    store = sample.store
    return WorkflowUnit(
        task=read_workflow_task(sample.metadata),
        epoch=sample.epoch,
        trace=read_steps(store.get(STEPS)) or (),
        deliverables=read_deliverables(store.get(DELIVERABLES)),
        inputs=read_deliverables(store.get(INPUTS)),
        strays=tuple(store.get(STRAYS, ())),
        failure=_failure(sample),
        usage=_usage(sample, calls),
        calls=read_calls(store.get(CALLS)),
        models=_models(calls),
    )


def _model_calls(sample: EvalSample) -> list[ModelEvent]:
    """The calls of the system's own model; those of a judge have a role."""
    return [
        event for event in sample.events if isinstance(event, ModelEvent) and event.role is None
    ]


def _failure(sample: EvalSample) -> str | None:
    if sample.error is None:
        return None
    return sample.error.message.splitlines()[0] if sample.error.message else "error"


def _models(calls: Sequence[ModelEvent]) -> tuple[str, ...]:
    return tuple(sorted({event.output.model for event in calls if event.output.model}))


def _usage(sample: EvalSample, calls: Sequence[ModelEvent]) -> Usage:
    if USAGE in sample.store:
        return Usage.model_validate(sample.store[USAGE])
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
