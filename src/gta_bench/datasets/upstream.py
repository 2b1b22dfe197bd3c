"""Results of the published pipeline: predictions of GTA-Atomic, task folders of GTA-Workflow."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile, zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gta_bench.datasets.atomic import RELEASED_PLACEHOLDER
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.files import parse, read_entries, read_json, sha256
from gta_bench.datasets.model import AtomicDataset, WorkflowDataset
from gta_bench.errors import DatasetError, counted
from gta_bench.metrics.compat.workflow import FAILED, FALLBACK
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.atomic import PLACEHOLDER_IMAGE
from gta_bench.records.calls import STATED, CallRecord, CallStatus
from gta_bench.records.finding import Finding
from gta_bench.records.run import Mode
from gta_bench.records.steps import AnswerStep, CallStep, ReplyStep, StepError, Trace
from gta_bench.records.units import AtomicUnit, UpstreamPair
from gta_bench.records.upstream import (
    DUMMY_REPLY,
    UNAVAILABLE,
    describe_odd,
    mark_dummies,
    read_trace,
)
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import WorkflowTask

PART = re.compile(r"(?P<stem>.+)_(?P<number>\d+)\.json")


class Predictions(NamedTuple):
    """A unit for every task of the dataset, and what is odd about the files."""

    units: tuple[AtomicUnit, ...]
    findings: tuple[Finding, ...]


class _Entry(NamedTuple):
    file: str
    key: str
    raw: JsonValue


def read_predictions(source: Path, dataset: AtomicDataset, mode: Mode) -> Predictions:
    """Read a prediction file, or a folder of parts; a task without prediction has no trace."""
    tasks = list(dataset.tasks.values())
    found: dict[str, UpstreamPair] = {}
    findings: list[Finding] = []
    for position, entry in _positions(source):
        if position >= len(tasks):
            raise DatasetError(
                f"there is no task at position {position}; the dataset has "
                f"{counted(len(tasks), 'task')}.",
                file=entry.file,
                task=entry.key,
                field="(key)",
            )
        found[tasks[position].id] = _pair(entry, mode)
        findings += _odd_findings(tasks[position].id, entry, mode)
    paths = _portable_paths(dataset)
    units = []
    for task in tasks:
        pair = found.get(task.id)
        trace = None if pair is None else mark_dummies(_portable(pair.trace, paths))
        units.append(
            AtomicUnit(
                task=task, trace=trace, upstream=pair, digests=task_digests(dataset, task.id)
            )
        )
        if pair is not None:
            findings += _dummy_findings(task.id, trace or (), source)
            stored = _assistant(_portable(pair.gold, paths))
            findings += _gold_findings(task.id, reference_steps(task), stored, source)
    return Predictions(tuple(units), tuple(findings))


def _positions(source: Path) -> Iterator[tuple[int, _Entry]]:
    """Every entry with its place in the dataset; parts follow each other without a gap."""
    offset = 0
    for file in _parts(source):
        entries = read_entries(file, allow_nan=True)
        places = []
        for key, raw in entries.items():
            if not key.isdecimal():
                raise DatasetError(
                    "the key is not a position.", file=file.name, task=key, field="(key)"
                )
            places.append(int(key))
            yield offset + int(key), _Entry(file.name, key, raw)
        offset += max(places, default=-1) + 1


def _parts(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    numbered = {
        int(match["number"]): file
        for file in sorted(source.glob("*.json"))
        if (match := PART.fullmatch(file.name))
    }
    if not numbered:
        raise DatasetError(
            "there is no prediction file or part (`<name>_0.json`).", file=str(source)
        )
    missing = sorted(set(range(max(numbered) + 1)) - numbered.keys())
    if missing:
        raise DatasetError(f"part {missing[0]} of {len(numbered)} is missing.", file=str(source))
    return [numbered[number] for number in sorted(numbered)]


def _pair(entry: _Entry, mode: Mode) -> UpstreamPair:
    traces = {}
    for name in ("prediction", "gold"):
        value = _first_turn(_stored(entry, name), mode)
        try:
            traces[name] = read_trace(value)
        except (ValueError, ValidationError) as exc:
            problem = str(exc) if not isinstance(exc, ValidationError) else "cannot be read."
            hint = " Is it a file of the other --mode?" if _looks_nested(value) else ""
            raise DatasetError(
                f"{problem}{hint}", file=entry.file, task=entry.key, field=name
            ) from exc
    return UpstreamPair(trace=traces["prediction"], gold=traces["gold"])


def _stored(entry: _Entry, name: str) -> JsonValue:
    return entry.raw.get(name) if isinstance(entry.raw, dict) else None


def _first_turn(value: JsonValue, mode: Mode) -> JsonValue:
    """The steps that are scored: end to end those of the first user turn, as published."""
    nested = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    return value[0] if mode == "end-to-end" and nested and isinstance(value, list) else value


def _odd_findings(task: str, entry: _Entry, mode: Mode) -> Iterator[Finding]:
    """What of a prediction is not scored, or is read in another way than it stands there."""
    stored = _stored(entry, "prediction")
    scored = _first_turn(stored, mode)
    words = describe_odd(scored)
    if scored is not stored and isinstance(stored, list) and len(stored) > 1:
        turns = counted(len(stored) - 1, "further user turn")
        words.append(f"the first user turn is scored; {turns} dropped")
    for one in words:
        yield Finding(
            check="odd-prediction",
            severity="warning",
            file=entry.file,
            task=task,
            field="prediction",
            message=f"{one}.",
        )


def _looks_nested(value: JsonValue) -> bool:
    return isinstance(value, list) and any(isinstance(item, list) for item in value)


def _portable_paths(dataset: AtomicDataset) -> dict[str, str]:
    paths = {item.source: item.path for task in dataset.tasks.values() for item in task.attachments}
    return paths | {RELEASED_PLACEHOLDER: PLACEHOLDER_IMAGE}


def _portable(trace: Trace, paths: Mapping[str, str]) -> Trace:
    """The same steps with the dataset's files under their portable paths."""
    return tuple(
        step.model_copy(
            update={
                "arguments": {
                    name: _portable_path(value, paths) for name, value in step.arguments.items()
                }
            }
        )
        if isinstance(step, CallStep) and isinstance(step.arguments, dict)
        else step
        for step in trace
    )


def _portable_path(value: JsonValue, paths: Mapping[str, str]) -> JsonValue:
    """A file of the dataset by whatever folder it lay in; anything else stays."""
    if not isinstance(value, str):
        return value
    parts = value.split("/")
    return next(
        (paths[tail] for start in range(len(parts)) if (tail := "/".join(parts[start:])) in paths),
        value,
    )


def _assistant(trace: Trace) -> Trace:
    return tuple(step for step in trace if isinstance(step, CallStep | AnswerStep))


def _dummy_findings(task: str, trace: Trace, source: Path) -> Iterator[Finding]:
    """One for a task in which stand-ins answered in place of tools."""
    calls = [step for step in trace if isinstance(step, CallStep)]
    dummies = [call for call in calls if call.error and call.error.type == UNAVAILABLE]
    if dummies:
        told = f"{len(dummies)} of {counted(len(calls), 'call')} reached no tool"
        yield Finding(
            check="dummy-reply",
            severity="warning",
            file=source.name,
            task=task,
            field="prediction",
            message=f"{told}: a stand-in answered {DUMMY_REPLY!r}. `strict` counts them as failed.",
        )


def _gold_findings(task: str, reference: Trace, stored: Trace, source: Path) -> Iterator[Finding]:
    """Differences between the file's references and the dataset's, beyond the folder's own path."""
    if len(reference) != len(stored):
        found = f"has {counted(len(stored), 'step')}, not {len(reference)}"
        yield _gold_finding(task, source, None, found)
    for index, (ours, theirs) in enumerate(zip(reference, stored, strict=False)):
        if ours != theirs:
            yield _gold_finding(task, source, index, "differs from the dataset's")


def _gold_finding(task: str, source: Path, index: int | None, problem: str) -> Finding:
    return Finding(
        check="gold-differs",
        severity="warning",
        file=source.name,
        task=task,
        field="gold" if index is None else f"gold.{index}",
        message=f"the reference stored in the file {problem}.",
    )


JUDGE: Final = "upstream"
PREDICTION: Final = "prediction.json"
SCORES: Final = "official_rescore_result.json"
ATTACHMENTS: Final = "attachments"
NOT_KEPT: Final = "reply_not_kept"


class WorkflowPrediction(NamedTuple):
    """What is stored of one task: the trace, the files, and the judge's verdicts with their root.

    Upstream attaches every file that a tool's reply names; the task's own inputs are left out.
    """

    task: WorkflowTask
    delivered: bool = True
    trace: Trace = ()
    calls: tuple[CallRecord, ...] = ()
    inputs: tuple[tuple[str, Path], ...] = ()
    files: tuple[Path, ...] = ()
    verdicts: tuple[VerdictRow, ...] = ()
    root: float | None = None


class _Stored(BaseModel):
    """Part of a score file; keys that we do not need are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _StoredNode(_Stored):
    id: str
    score: float
    analysis: str


class _StoredDetail(_Stored):
    score: float
    nodes: list[_StoredNode]


class _StoredScores(_Stored):
    details: list[_StoredDetail]


def read_workflow_predictions(
    source: Path, dataset: WorkflowDataset
) -> tuple[WorkflowPrediction, ...]:
    """One for every task of the dataset; a task without a folder has delivered nothing."""
    if not any((source / f"task{task}").is_dir() for task in dataset.tasks):
        raise DatasetError("there is no `task<ID>` folder of the dataset's.", file=str(source))
    return tuple(
        _prediction(source / f"task{task.id}", dataset, task) for task in dataset.tasks.values()
    )


def _prediction(folder: Path, dataset: WorkflowDataset, task: WorkflowTask) -> WorkflowPrediction:
    inputs = [
        (item.path, dataset.root / item.source)
        for item in task.attachments
        if (dataset.root / item.source).is_file()
    ]
    found = WorkflowPrediction(task, inputs=tuple(inputs))
    if not folder.is_dir():
        return found._replace(delivered=False)
    trace = _trace(folder / PREDICTION, task.id)
    given = {sha256(file) for _, file in inputs}
    files = sorted(file for file in (folder / ATTACHMENTS).glob("*") if _is_plain_file(file))
    found = found._replace(
        trace=trace,
        calls=call_records(trace),
        files=tuple(file for file in files if sha256(file) not in given),
    )
    if not (folder / SCORES).is_file():
        return found
    stored = parse(_StoredScores, read_json(folder / SCORES), file=SCORES, task=task.id)
    if len(stored.details) != 1:
        problem = f"has the scores of {len(stored.details)} tasks, not of one."
        raise DatasetError(problem, file=SCORES, task=task.id, field="details")
    detail = stored.details[0]
    return found._replace(verdicts=_verdicts(task, detail.nodes), root=detail.score)


def _is_plain_file(file: Path) -> bool:
    """Links are not followed: what they lead to was not delivered."""
    return file.is_file() and not file.is_symlink() and not file.parent.is_symlink()


def _trace(file: Path, task: str) -> Trace:
    entries = list(read_entries(file).values())
    entry = entries[0] if len(entries) == 1 else None
    steps = entry.get("prediction") if isinstance(entry, dict) else None
    if not isinstance(steps, list) or len(steps) != 1 or not isinstance(steps[0], list):
        raise DatasetError(
            "there must be one entry with one trace.", file=file.name, task=task, field="prediction"
        )
    try:
        return read_workflow_trace(steps[0])
    except (ValueError, ValidationError) as exc:
        problem = "cannot be read." if isinstance(exc, ValidationError) else str(exc)
        raise DatasetError(problem, file=file.name, task=task, field="prediction") from exc


def read_workflow_trace(steps: Sequence[JsonValue]) -> Trace:
    """Upstream's steps of a Workflow task, where a tool's reply says what became of the call."""
    spread = list(_spread_calls(steps))
    trace = read_trace([_plain_reply(step) for step in spread])
    return mark_dummies(_with_failures(trace, [_failure(step) for step in spread]))


def _spread_calls(steps: Sequence[JsonValue]) -> Iterator[JsonValue]:
    """Steps with one call each, every call before its own reply: by id, else in order."""
    rest = list(steps)
    while rest:
        step = rest.pop(0)
        calls = step.get("tool_calls") if isinstance(step, dict) else None
        if not isinstance(step, dict) or not isinstance(calls, list) or len(calls) < 2:
            yield step
            continue
        replies = [rest.pop(0) for _ in takewhile(_is_reply, list(rest))]
        for call in calls:
            yield {**step, "tool_calls": [call]}
            if replies:
                yield replies.pop(_place_of_reply(call, replies))
        yield from replies


def _is_reply(step: JsonValue) -> bool:
    return isinstance(step, dict) and step.get("role") == "tool"


def _place_of_reply(call: JsonValue, replies: Sequence[JsonValue]) -> int:
    named = call.get("id") if isinstance(call, dict) else None
    ids = [reply.get("tool_call_id") if isinstance(reply, dict) else None for reply in replies]
    return ids.index(named) if named is not None and named in ids else 0


def _plain_reply(step: JsonValue) -> JsonValue:
    """A tool's step as GTA-Atomic's files have it: the parts alone, none where it failed."""
    if not isinstance(step, dict) or not isinstance(step.get("content"), dict):
        return step
    content = step["content"]
    assert isinstance(content, dict)
    return {**step, "content": content.get("result")}


def _failure(step: JsonValue) -> StepError | None:
    content = step.get("content") if isinstance(step, dict) else None
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict):
        return None
    return StepError(type=str(error.get("type")), message=str(error.get("msg")))


def _with_failures(trace: Trace, failures: Sequence[StepError | None]) -> Trace:
    """Calls with the error that the reply after them has."""
    return tuple(
        step.model_copy(update={"error": step.error or failure})
        if isinstance(step, CallStep)
        else step
        for step, failure in zip_longest(trace, failures[1:])
    )


def call_records(trace: Trace) -> tuple[CallRecord, ...]:
    """What became of each call that has a reply; how long it took was not kept."""
    return tuple(
        CallRecord(
            tool=step.name,
            status=_status(step.error),
            seconds=0.0,
            message="" if step.error is None else step.error.message,
            backend=STATED,
        )
        for step, after in pairwise(trace)
        if isinstance(step, CallStep) and isinstance(after, ReplyStep)
    )


def _status(error: StepError | None) -> CallStatus:
    if error is None:
        return "done"
    return "unavailable" if error.type == UNAVAILABLE else "error"


def dummy_notes(calls: Sequence[CallRecord]) -> tuple[str, ...]:
    """A note on calls that a stand-in answered; none where there is no such call."""
    dummies = sum(call.status == "unavailable" for call in calls)
    if not dummies:
        return ()
    return (
        f"{dummies} of {counted(len(calls), 'tool call')} reached no tool: the published pipeline "
        f"answered {DUMMY_REPLY!r} in its place. They count as not done.",
    )


def _verdicts(task: WorkflowTask, nodes: Sequence[_StoredNode]) -> tuple[VerdictRow, ...]:
    leaves = [leaf.id for leaf in task.leaves()]
    if leaves != [node.id for node in nodes]:
        raise DatasetError(
            "the scored leaves are not those of the dataset.",
            file=SCORES,
            task=task.id,
            field="nodes",
        )
    return tuple(_verdict(task, node) for node in nodes)


def _verdict(task: WorkflowTask, node: _StoredNode) -> VerdictRow:
    """A score that upstream guessed from a reply that it did not keep is none."""
    key = VerdictKey(task=task.id, leaf=node.id, judge=JUDGE)
    if node.analysis in (FALLBACK, FAILED):
        detail = f"upstream took {node.score:g} by its rule for broken replies ({node.analysis})"
        verdict = Unscored(cause=NOT_KEPT, detail=detail)
        return VerdictRow(key=key, verdict=verdict, compat=node.score)
    return VerdictRow(key=key, verdict=Scored(value=node.score, reason=node.analysis))
