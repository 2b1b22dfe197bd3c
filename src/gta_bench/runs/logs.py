"""Reads a run's logs back as units, whether they ended in success, an error or a kill."""

import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol
from uuid import uuid4

from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalSample,
    list_eval_logs,
    read_eval_log,
    read_eval_log_samples_by_id,
    write_eval_log,
)
from inspect_ai.model import ModelUsage
from pydantic import ValidationError
from pydantic_core import to_json

from gta_bench.errors import RunError, is_stop_note
from gta_bench.metrics.run_scores import total_usage
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.attempts import AttemptLine, Attempts, UnitKey, count_attempts, newest_lines
from gta_bench.records.cost import Cost, make_cost, sum_costs
from gta_bench.records.digests import TaskDigests, digest_known
from gta_bench.records.files import Deliverable
from gta_bench.records.progress import short_cause
from gta_bench.records.run import STATEMENT, RunSpec
from gta_bench.records.units import AtomicUnit, UnitT, Usage, WorkflowUnit
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.runs.directory import LOGS, explain_unreadable, is_broken_json
from gta_bench.runs.log_layout import (
    SampleReader,
    Stored,
    StoredSample,
    read_stored_samples,
    read_stored_summaries,
)
from gta_bench.runs.requirements import read_edited
from gta_bench.runs.samples import TASK, UPSTREAM, UnitData, read_unit_data
from gta_bench.runs.store import StorePath, append_lines, explain_store_errors, join_parts, parts_of

# Samples that are in memory at once while a log is read. Inspect reads the log's directory again
# for each batch, so a long log is read in at most so many batches.
BATCH = 256
MOST_BATCHES = 50
FREE = Cost()


class ReadUnits(NamedTuple, Generic[UnitT]):
    """The units in the logs, and the (task, epoch) pairs that were not run yet."""

    units: tuple[UnitT, ...]
    not_run: tuple[UnitKey, ...]


class UnitStream(Iterable[UnitT]):
    """The units of a run, task by task and epoch by epoch, read from the logs one at a time.

    `not_run` has the units that the logs lack; it is complete once all units were read.
    """

    def __init__(
        self, folder: StorePath, tasks: Sequence[str], epochs: int, kind: type[UnitT]
    ) -> None:
        self._folder = folder
        self._tasks = tasks
        self._epochs = epochs
        self._kind: type[UnitT] = kind
        self.not_run: list[UnitKey] = []

    def __iter__(self) -> Iterator[UnitT]:
        self.not_run.clear()
        for key, unit in self._pairs(unit_keys(dict.fromkeys(self._tasks), self._epochs)):
            if unit is None:
                self.not_run.append(key)
            else:
                yield unit

    def pick(self, keys: Iterable[UnitKey]) -> dict[UnitKey, UnitT]:
        """Read only these units, as far as they were run."""
        return {key: unit for key, unit in self._pairs(keys) if unit is not None}

    def _pairs(self, keys: Iterable[UnitKey]) -> Iterator[tuple[UnitKey, UnitT | None]]:
        if self._kind is WorkflowUnit:
            known = _Tasks(WorkflowTask, read_edited(self._folder.parent).trees)
        else:
            known = _Tasks(AtomicTask, {})
        logs, tried = self._logs, self._tried
        with SampleReader() as reader:
            for key in keys:
                sample = self._read(reader, logs.get(key), key)
                unit = None
                if sample is not None:
                    with explain_unreadable(logs[key]):
                        unit = _unit(sample, self._kind, known, tried)
                yield key, unit

    @cached_property
    def _logs(self) -> dict[UnitKey, str]:
        """The log of every unit that was run to an end."""
        kept = find_kept_units(self._folder)
        return {key: one.log for key, one in kept.items() if not one.stopped}

    @cached_property
    def _tried(self) -> Mapping[UnitKey, Attempts]:
        return read_attempts(self._folder.parent) or {}

    def _read(self, reader: SampleReader, log: str | None, key: UnitKey) -> StoredSample | None:
        if log is None:
            return None
        with explain_unreadable(log), explain_store_errors(self._folder):
            sample = reader.read(log, key)
        # A sample that failed before its solver began has no record of its task yet.
        return sample if sample.failure is None or TASK in sample.metadata else None


def read_units(
    folder: StorePath, tasks: Sequence[str], epochs: int, kind: type[UnitT]
) -> ReadUnits[UnitT]:
    """Read one unit for every task and epoch that was run, in that order."""
    stream = UnitStream(folder, tasks, epochs, kind)
    return ReadUnits(tuple(stream), tuple(stream.not_run))


def pick_units(
    units: UnitStream[UnitT] | Sequence[UnitT], keys: Collection[UnitKey]
) -> dict[UnitKey, UnitT]:
    """Return some units of a run, from its logs or from a list."""
    if isinstance(units, UnitStream):
        return units.pick(keys)
    found = {(unit.task.id, unit.epoch): unit for unit in units}
    return {key: found[key] for key in keys if key in found}


def unit_keys(tasks: Iterable[str], epochs: int) -> list[UnitKey]:
    """Return every task in every epoch, task by task."""
    return [(task, epoch) for task in tasks for epoch in range(1, epochs + 1)]


def read_run_units(run: StorePath, spec: RunSpec) -> Sequence[AtomicUnit] | Sequence[WorkflowUnit]:
    """Read the units of `spec` that were run, of either dataset."""
    if spec.dataset == "workflow":
        return read_units(run / LOGS, spec.tasks, spec.epochs, WorkflowUnit).units
    return read_units(run / LOGS, spec.tasks, spec.epochs, AtomicUnit).units


def read_finished(folder: StorePath) -> dict[UnitKey, UnitData]:
    """Read what every finished unit stored, by task and epoch."""
    found = {}
    for log, keys in _newest_by_log(folder).items():
        with explain_unreadable(log), explain_store_errors(folder):
            for sample in read_stored_samples(log, keys):
                if sample.error is None:
                    found[sample.key] = read_unit_data(sample.store.items())
    return found


class Kept(NamedTuple):
    """The log with the newest sample of a unit, whether it is finished, and what it cost.

    A `stopped` unit did not begin or was interrupted, so it has no result. `attempts` is how often
    Inspect tried it at most, as far as this log shows. `sample` identifies the sample among all
    logs of the run, and `seconds` is how long it took.
    """

    log: str
    finished: bool
    cost: Cost
    stopped: bool = False
    attempts: int = 1
    sample: str = ""
    seconds: float | None = None


def find_kept_units(
    folder: StorePath, superseded: Collection[str] | None = None
) -> dict[UnitKey, Kept]:
    """Find the newest sample of every unit in the logs; a finished one beats a failed one.

    Samples that were asked something else than the run's dataset asks now are left out; by default,
    those that `requirements.json` names.
    """
    if superseded is None:
        superseded = frozenset(read_edited(folder.parent).superseded)
    found: dict[UnitKey, Kept] = {}
    for log in list_logs(folder):
        with explain_unreadable(log), explain_store_errors(folder):
            for one in read_stored_summaries(log):
                sample = identify_sample(log, one)
                if sample in superseded:
                    continue
                # Epochs share the name of their task.
                key = (sys.intern(str(one.id)), one.epoch)
                if key not in found or one.error is None or not found[key].finished:
                    cost = models_cost(one.model_usage.values()) if one.model_usage else FREE
                    stopped = one.error is not None and is_stop_note(one.error)
                    tried = 1 + (one.retries or 0)
                    found[key] = Kept(
                        log, one.error is None, cost, stopped, tried, sample, one.total_time
                    )
    return found


def identify_sample(log: str, sample: Stored) -> str:
    """Return the id of a sample; imported ones, which have none, get one from their log."""
    name = log.rpartition("/")[2]
    return sample.uuid or f"{name}:{sample.id}.{sample.epoch}"


def read_sample_digests(folder: StorePath) -> Iterator[tuple[str, str, TaskDigests]]:
    """Yield every finished sample of all logs: its id, its task, and what that was when it ran."""
    for log in list_logs(folder):
        with explain_unreadable(log), explain_store_errors(folder):
            keys = [one.key for one in read_stored_summaries(log) if one.error is None]
            for sample in read_stored_samples(log, keys):
                data = read_unit_data(sample.store.items())
                found = data.digests
                if found is None:
                    found = digest_known(
                        WorkflowTask.model_validate(sample.metadata[TASK]), data.inputs
                    )
                yield identify_sample(log, sample), str(sample.id), found


def restore_attempts(run: StorePath, kept: Mapping[UnitKey, Kept]) -> None:
    """Append attempts at units without a result that the logs show and `attempts.jsonl` lacks.

    Otherwise a system whose lines were removed or damaged would get more attempts than others. Logs
    of versions that had no such file are ignored.
    """
    failed = {key: one for key, one in kept.items() if not (one.finished or one.stopped)}
    if not failed:
        return
    lines = read_attempt_lines(run) or ()
    tried = newest_lines(line for line in lines if (line.task, line.epoch) in failed)
    lacking: dict[str, list[UnitKey]] = {}
    for key, one in failed.items():
        if len(tried.get(key, ())) < one.attempts:
            lacking.setdefault(one.log, []).append(key)
    for log, keys in lacking.items():
        with explain_unreadable(log), explain_store_errors(run):
            if STATEMENT not in (read_eval_log(log, header_only=True).eval.metadata or {}):
                continue
            for sample in read_stored_samples(log, keys):
                known = tried.get(sample.key, {})
                shown = _shown_attempts(sample)
                new = [line for line in shown if line.attempt not in known]
                if (lost := len(shown) - len(known)) > 0:
                    append_attempts(run, new[-lost:])


def _shown_attempts(sample: StoredSample) -> list[AttemptLine]:
    """List the attempts of a sample without a result; only the last has an id and usage."""
    causes = [*sample.failed_before, sample.failure or ""]
    names = [uuid4().hex for _ in sample.failed_before] + [sample.uuid or uuid4().hex]
    used = sample_usage(sample, sample.model_calls())
    return [
        AttemptLine(
            task=str(sample.id),
            epoch=sample.epoch,
            attempt=names[number - 1],
            when=datetime.now(UTC),
            end="failed",
            cause=short_cause(cause),
            usage=used if number == len(causes) else Usage(),
        )
        for number, cause in enumerate(causes, 1)
    ]


def count_finished(folder: StorePath) -> int:
    """Count the units in the logs that need not be run again."""
    return sum(one.finished for one in find_kept_units(folder).values())


def list_logs(folder: StorePath) -> list[str]:
    """List the logs of a run and of its shards, oldest first."""
    if not folder.is_dir():
        return []
    with explain_store_errors(folder):
        # Resolved, so that a log has one name even if it is reached through links or `..`.
        found = list_eval_logs(str(folder.resolve()))
    return sorted(
        (info.name.removeprefix("file://") for info in found),
        key=lambda name: name.rsplit("/", 1)[-1],
    )


def read_data_path(folder: StorePath) -> str | None:
    """Return the path of the dataset that the logs were made with; Inspect continues no other."""
    for log in list_logs(folder)[:1]:
        with explain_unreadable(log), explain_store_errors(folder):
            deque(read_stored_summaries(log), 0)  # raises our own error for a damaged log
            found = read_eval_log(log, header_only=True).eval.task_args.get("data")
        return None if found is None else str(found)
    return None


class UnitConversation(NamedTuple):
    """The texts of a unit's own model calls: prompts, tool results and replies (`said`).

    `replied` has only the replies to these calls. `models` has the names of the models asked.
    """

    task: str
    epoch: int
    prompts: str
    by_tools: str
    said: str
    replied: str
    models: tuple[str, ...] = ()


def read_conversation(sample: EvalSample) -> UnitConversation:
    """Collect the messages of a unit, without a judge's calls."""
    prompts: dict[str, None] = {}
    tools: dict[str, None] = {}
    said: dict[str, None] = {sample.output.completion: None}
    own = [event for event in model_events(sample) if event.role is None]
    for event in own:
        for message in event.input:
            kept = {"tool": tools, "assistant": said}.get(message.role, prompts)
            kept[message.text] = None
    replies = dict.fromkeys(event.output.completion for event in own)
    return UnitConversation(
        task=str(sample.id),
        epoch=sample.epoch,
        prompts="\n".join(prompts),
        by_tools="\n".join(tools),
        said="\n".join(said | replies),
        replied="\n".join(replies),
        models=tuple(dict.fromkeys(event.model for event in own)),
    )


def model_events(sample: EvalSample) -> list[ModelEvent]:
    """Return every model call in a sample, including a judge's."""
    return [event for event in sample.events if isinstance(event, ModelEvent)]


def read_whole_samples(folder: StorePath) -> Iterator[EvalSample]:
    """Yield the newest sample of each unit with all its messages, a few in memory at a time."""
    for log, keys in _newest_by_log(folder).items():
        batch = max(BATCH, -(-len(keys) // MOST_BATCHES))
        for start in range(0, len(keys), batch):
            with explain_unreadable(log), explain_store_errors(folder):
                samples = read_eval_log_samples_by_id(
                    log, keys[start : start + batch], resolve_attachments=True
                )
            yield from samples


def copy_logs(folder: StorePath, to: StorePath) -> None:
    """Write the logs again as plain JSON, which any reader can check before unpacking."""
    for info in list_eval_logs(str(folder)):
        name = info.name.rsplit("/", 1)[-1].rpartition(".")[0]
        write_eval_log(read_eval_log(info), str(to / f"{name}.json"), format="json")


def find_log(folder: StorePath, task: str, epoch: int) -> str | None:
    """Return the path of the log with the unit, relative to the folder."""
    kept = find_kept_units(folder).get((task, epoch))
    return None if kept is None else kept.log.removeprefix(f"{folder.resolve()}/")


def _newest_by_log(folder: StorePath) -> dict[str, list[UnitKey]]:
    """Group the units that ran to an end by the log with their newest sample."""
    found: dict[str, list[UnitKey]] = {}
    for key, kept in find_kept_units(folder).items():
        if not kept.stopped:
            found.setdefault(kept.log, []).append(key)
    return found


def _unit(
    sample: StoredSample, kind: type[UnitT], tasks: "_Tasks", tried: Mapping[UnitKey, Attempts]
) -> UnitT:
    calls, data = sample.model_calls(), read_unit_data(sample.store.items())
    task = tasks.read(sample)
    attempts: Attempts = tried.get(sample.key, Attempts())
    # Attempts without a result are recorded outside the log. A harness may state its own usage.
    took = list(attempts.usage)
    if sample.error is None or not attempts.number:
        took.append(data.usage or sample_usage(sample, calls))
    # Includes attempts whose lines were removed, as far as the log shows them.
    number = max(attempts.number, 1 + len(sample.failed_before)) if attempts.number else None
    values: dict[str, Any] = {
        "task": task,
        "epoch": sample.epoch,
        "deliverables": data.deliverables,
        "inputs": data.inputs,
        "strays": data.strays,
        "states": data.states,
        "delivered": data.delivered,
        "failure": sample.failure,
        "upstream": sample.metadata.get(UPSTREAM),
        "usage": total_usage(took),
        "calls": data.calls,
        "models": tuple(sorted({call.output.model for call in calls if call.output.model})),
        "digests": tasks.digests(task, data),
        "stops": data.stops,
        "attempts": number,
    }
    if data.steps is not None and (sample.failure is None or kind is WorkflowUnit):
        values["trace"] = data.steps
    return kind.model_validate(values)


class _Tasks:
    """The task of the last sample and its digests, which all its epochs share."""

    def __init__(
        self,
        kind: type[AtomicTask] | type[WorkflowTask],
        trees: Mapping[str, tuple[Checkpoint, ...]],
    ) -> None:
        self._kind = kind
        self._trees = trees
        self._raw: Any = None
        self._task: AtomicTask | WorkflowTask | None = None
        self._digests: TaskDigests | None = None
        self._computed: dict[tuple[Deliverable, ...], TaskDigests] = {}

    def read(self, sample: StoredSample) -> AtomicTask | WorkflowTask:
        """Return the task of a sample."""
        if self._task is None or self._raw != sample.metadata[TASK]:
            task = self._kind.model_validate(sample.metadata[TASK])
            if task.id in self._trees:
                task = task.model_copy(update={"checkpoints": self._trees[task.id]})
            self._raw, self._task, self._digests = sample.metadata[TASK], task, None
            self._computed.clear()
        return self._task

    def digests(self, task: AtomicTask | WorkflowTask, data: UnitData) -> TaskDigests:
        """Return the digests of a unit, computed from the unit if its log has none."""
        found = data.digests or self._compute(task, data.inputs)
        if task.id in self._trees:
            now = self._compute(task, data.inputs)
            found = found.model_copy(update={"leaf": now.leaf, "weighs": now.weighs})
        if self._digests != found:
            self._digests = found
        return self._digests

    def _compute(
        self, task: AtomicTask | WorkflowTask, inputs: tuple[Deliverable, ...]
    ) -> TaskDigests:
        if inputs not in self._computed:
            self._computed[inputs] = digest_known(task, inputs)
        return self._computed[inputs]


class _Asked(Protocol):
    """A model call, as an event or as read from a log."""

    @property
    def error(self) -> str | None: ...
    @property
    def retries(self) -> int | None: ...


def sample_usage(sample: StoredSample | EvalSample, calls: Sequence[_Asked]) -> Usage:
    """Sum the usage of a sample with these model calls."""
    used = list(sample.model_usage.values())
    return Usage(
        model_calls=sum(call.error is None for call in calls),
        input_tokens=sum(map(count_sent, used)),
        output_tokens=sum(usage.output_tokens for usage in used),
        retries=sum(call.retries or 0 for call in calls),
        seconds=sample.total_time or 0.0,
        cost_usd=models_cost(used).total,
    )


def count_sent(usage: ModelUsage) -> int:
    """Return the tokens that were sent, also those that the provider read from its cache."""
    cached = (usage.input_tokens_cache_read, usage.input_tokens_cache_write)
    return usage.input_tokens + sum(tokens or 0 for tokens in cached)


def models_cost(used: Iterable[ModelUsage]) -> Cost:
    """Sum the cost of the models that a sample used."""
    return sum_costs(make_cost(usage.total_cost) for usage in used)


ATTEMPTS = "attempts.jsonl"


def append_attempts(run: StorePath, lines: Iterable[AttemptLine]) -> None:
    """Append lines durably; several processes may do so at once."""
    dumped = (line.model_dump_json(exclude_defaults=True).encode() for line in lines)
    append_lines(run / ATTEMPTS, b"".join(line + b"\n" for line in dumped))


def read_attempts(run: StorePath, task: str | None = None) -> dict[UnitKey, Attempts] | None:
    """Count the attempts at every unit, or at one task's; None if they were not recorded."""
    lines = read_attempt_lines(run, task)
    return None if lines is None else count_attempts(lines)


def read_attempt_lines(run: StorePath, task: str | None = None) -> Iterator[AttemptLine] | None:
    """Read the lines of all attempts, or of one task's; None if they were not recorded.

    Runs of earlier versions and imported runs have no record of them. A line that a kill cut off is
    skipped; any other unreadable line is an error.
    """
    file = run / ATTEMPTS
    if not (file.is_file() or parts_of(file).is_dir()):
        return None
    return _attempt_lines(file, b"" if task is None else to_json(task))


def _attempt_lines(file: StorePath, named: bytes) -> Iterator[AttemptLine]:
    """Yield the lines with this text."""
    with join_parts(file) as whole, whole.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if line == b"\n" or named not in line:
                continue
            try:
                found = AttemptLine.model_validate_json(line)
            except ValidationError as exc:
                if is_broken_json(exc):
                    continue
                raise RunError(
                    f"{file}, line {number}: not a valid attempt. Remove the line, or restore the "
                    "file from a copy."
                ) from exc
            yield found
