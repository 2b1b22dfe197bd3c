"""A run's logs read back as units, whatever ended them: success, an error, or a kill."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile

from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalSample,
    list_eval_logs,
    read_eval_log,
    read_eval_log_samples_by_id,
    write_eval_log,
)
from inspect_ai.model import ModelUsage
from zstandard import ZstdError

from gta_bench.errors import RunError
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
from gta_bench.runs.stored_samples import (
    Key,
    ModelCall,
    StoredSample,
    stored_samples,
    stored_summaries,
)

Kind = TypeVar("Kind")
# Samples that are in memory at once while a log is read. With each go the engine reads the
# log's directory again, so that a long log is read in no more than so many goes.
BATCH = 256
GOES = 50


# What readers of archives raise where bytes are wrong.
_DAMAGE = (
    BadZipFile,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    ValueError,
    ZstdError,
)


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
    return ReadUnits(*_read(folder, tasks, epochs, _unit))


def read_workflow_units(folder: StorePath, tasks: Sequence[str], epochs: int) -> ReadWorkflowUnits:
    """One unit for every Workflow task and epoch that was run."""
    return ReadWorkflowUnits(*_read(folder, tasks, epochs, _workflow_unit))


def read_stores(folder: StorePath) -> dict[tuple[str, int], dict[str, Any]]:
    """What every finished sample keeps, by task and epoch."""
    return {one.key: one.store for one in _newest(folder) if one.error is None}


class Kept(NamedTuple):
    """Where the newest sample of a unit lies, whether it is finished, and what it cost."""

    log: str
    finished: bool
    cost_usd: float | None


def kept_units(folder: StorePath) -> dict[Key, Kept]:
    """Every unit that the logs hold; a killed attempt leaves its log, and finished beats failed."""
    found: dict[Key, Kept] = {}
    for log in log_files(folder):
        with told_if_damaged(log), reaching(folder):
            summaries = stored_summaries(log)
        for one in summaries:
            if one.key not in found or one.error is None or not found[one.key].finished:
                found[one.key] = Kept(log, one.error is None, _cost(one.model_usage.values()))
    return found


def finished_units(folder: StorePath) -> int:
    """How many units the logs hold that need not be run again."""
    return sum(one.finished for one in kept_units(folder).values())


def log_files(folder: StorePath) -> list[str]:
    """The logs of a run and of its shards, by the time at which they were begun."""
    if not folder.is_dir():
        return []
    with reaching(folder):
        # Resolved, so that one log has one name, whatever links and `..` lead to it.
        found = list_eval_logs(str(folder.resolve()))
    return sorted(
        (info.name.removeprefix("file://") for info in found),
        key=lambda name: name.rsplit("/", 1)[-1],
    )


@contextmanager
def told_if_damaged(log: str) -> Iterator[None]:
    """A log that is no log, or only half of one, is named with what can be done."""
    try:
        yield
    except FileNotFoundError:
        raise
    except _DAMAGE as exc:
        said = (str(exc).splitlines() or [""])[0][:120]
        raise RunError(
            f"The log {log} is damaged ({type(exc).__name__}: {said}). "
            "All other logs of the run are untouched. Put a copy of it in its place, or remove it "
            "and give the same command again: only the units that it held are run again."
        ) from exc


class Said(NamedTuple):
    """What a unit's system was told and what it said itself, in its own model calls."""

    task: str
    epoch: int
    told: str
    by_tools: str
    said: str


def read_said(folder: StorePath) -> Iterator[Said]:
    """The messages of every unit; a judge's calls are left out."""
    for sample in _whole_samples(folder):
        told: dict[str, None] = {}
        tools: dict[str, None] = {}
        said: dict[str, None] = {sample.output.completion: None}
        events = (event for event in sample.events if isinstance(event, ModelEvent))
        for event in (one for one in events if one.role is None):
            for message in event.input:
                kept = {"tool": tools, "assistant": said}.get(message.role, told)
                kept[message.text] = None
            said[event.output.completion] = None
        yield Said(str(sample.id), sample.epoch, *("\n".join(one) for one in (told, tools, said)))


def _whole_samples(folder: StorePath) -> Iterator[EvalSample]:
    """The newest sample of each unit with all that was said, a few in memory at a time."""
    for log, keys in _newest_by_log(folder, None).items():
        batch = max(BATCH, -(-len(keys) // GOES))
        for start in range(0, len(keys), batch):
            with told_if_damaged(log), reaching(folder):
                samples = read_eval_log_samples_by_id(
                    log, keys[start : start + batch], resolve_attachments=True
                )
            yield from samples


def copy_logs(folder: StorePath, to: StorePath) -> None:
    """The logs once more as plain JSON, which any reader can check before unpacking."""
    for info in list_eval_logs(str(folder)):
        name = info.name.rsplit("/", 1)[-1].rpartition(".")[0]
        write_eval_log(read_eval_log(info), str(to / f"{name}.json"), format="json")


def log_of(folder: StorePath, task: str, epoch: int) -> str | None:
    """The log that holds the unit, as seen from the folder."""
    kept = kept_units(folder).get((task, epoch))
    return None if kept is None else kept.log.removeprefix(f"{folder.resolve()}/")


def _newest_by_log(folder: StorePath, wanted: Container[Key] | None) -> dict[str, list[Key]]:
    """Which log has the newest sample of each unit."""
    found: dict[str, list[Key]] = {}
    for key, kept in kept_units(folder).items():
        if wanted is None or key in wanted:
            found.setdefault(kept.log, []).append(key)
    return found


def _newest(folder: StorePath, wanted: Container[Key] | None = None) -> Iterator[StoredSample]:
    """The newest sample of each unit."""
    for log, keys in _newest_by_log(folder, wanted).items():
        with told_if_damaged(log), reaching(folder):
            yield from stored_samples(log, keys)


def _read(
    folder: StorePath,
    tasks: Sequence[str],
    epochs: int,
    read: Callable[[StoredSample, dict[str, Any]], Kind],
) -> tuple[tuple[Kind, ...], tuple[Key, ...]]:
    """The units in the order of tasks and epochs, and those that no log has."""
    known: dict[str, Any] = {}
    wanted = {(task, epoch): None for task in tasks for epoch in range(1, epochs + 1)}
    found = {sample.key: read(sample, known) for sample in _newest(folder, wanted)}
    return (
        tuple(found[key] for key in wanted if key in found),
        tuple(key for key in wanted if key not in found),
    )


def _shared(
    sample: StoredSample, known: dict[str, Any], read: Callable[[Mapping[str, Any]], Kind]
) -> Kind:
    """The sample's task; epochs of one task share its record, which is the larger part."""
    raw, task = known.get(str(sample.id), (None, None))
    if raw != sample.metadata:
        task = read(sample.metadata)
        known[str(sample.id)] = (sample.metadata, task)
    found: Kind = task
    return found


def _unit(sample: StoredSample, known: dict[str, Any]) -> Unit:
    calls, failure = sample.model_calls(), sample.failure
    return Unit(
        task=_shared(sample, known, read_task),
        epoch=sample.epoch,
        trace=None if failure else read_steps(sample.store.get(STEPS)),
        failure=failure,
        upstream=read_upstream(sample.metadata),
        usage=_usage(sample, calls),
        calls=read_calls(sample.store.get(CALLS)),
        models=_models(calls),
    )


def _workflow_unit(sample: StoredSample, known: dict[str, Any]) -> WorkflowUnit:
    calls, store = sample.model_calls(), sample.store
    return WorkflowUnit(
        task=_shared(sample, known, read_workflow_task),
        epoch=sample.epoch,
        trace=read_steps(store.get(STEPS)) or (),
        deliverables=read_deliverables(store.get(DELIVERABLES)),
        inputs=read_deliverables(store.get(INPUTS)),
        strays=tuple(store.get(STRAYS, ())),
        failure=sample.failure,
        usage=_usage(sample, calls),
        calls=read_calls(store.get(CALLS)),
        models=_models(calls),
    )


def _models(calls: Sequence[ModelCall]) -> tuple[str, ...]:
    return tuple(sorted({call.output.model for call in calls if call.output.model}))


def _usage(sample: StoredSample, calls: Sequence[ModelCall]) -> Usage:
    if USAGE in sample.store:
        return Usage.model_validate(sample.store[USAGE])
    used = list(sample.model_usage.values())
    return Usage(
        model_calls=sum(call.error is None for call in calls),
        input_tokens=sum(usage.input_tokens for usage in used),
        output_tokens=sum(usage.output_tokens for usage in used),
        retries=sum(call.retries or 0 for call in calls),
        seconds=sample.total_time or 0.0,
        cost_usd=_cost(used),
    )


def _cost(used: Iterable[ModelUsage]) -> float | None:
    costs = [usage.total_cost for usage in used if usage.total_cost is not None]
    return sum(costs) if costs else None
