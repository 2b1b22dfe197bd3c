"""Results of the published pipeline: predictions of GTA-Atomic, task folders of GTA-Workflow.

GTA-Atomic's are one JSON object, or several parts, by position in the dataset. GTA-Workflow's are
folders `task<ID>` with `prediction.json`, the files under `attachments`, and if the task was judged
`official_rescore_result.json`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile, zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gta_bench.datasets.atomic import portable_paths
from gta_bench.datasets.digest import task_digests
from gta_bench.datasets.files import Location, parse, read_entries, read_json, sha256
from gta_bench.datasets.model import AtomicDataset, WorkflowDataset
from gta_bench.errors import format_count
from gta_bench.metrics.compat.workflow import FAILED, FALLBACK
from gta_bench.metrics.reference import reference_steps
from gta_bench.records.calls import STATED, CallRecord
from gta_bench.records.finding import Finding
from gta_bench.records.run import Mode
from gta_bench.records.steps import (
    DUMMY_REPLY,
    UNAVAILABLE,
    AnswerStep,
    CallStep,
    PredictedStep,
    ReplyStep,
    StepError,
    Trace,
    describe_odd,
    mark_dummies,
    read_trace,
)
from gta_bench.records.units import AtomicUnit, UpstreamPair
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import WorkflowTask

PART = re.compile(r"(?P<stem>.+)_(?P<number>\d+)\.json")
JUDGE: Final = "upstream"
PREDICTION: Final = "prediction.json"
SCORES: Final = "official_rescore_result.json"
ATTACHMENTS: Final = "attachments"
NOT_KEPT: Final = "reply_not_kept"


class Predictions(NamedTuple):
    """A unit for every task of the dataset, and findings about the files."""

    units: tuple[AtomicUnit, ...]
    findings: tuple[Finding, ...]


def read_predictions(source: Path, dataset: AtomicDataset, mode: Mode) -> Predictions:
    """Read a prediction file, or a folder of parts; a task without prediction has no trace."""
    tasks = list(dataset.tasks.values())
    found: dict[str, UpstreamPair] = {}
    findings: list[Finding] = []
    for position, where, raw in _read_positions(source):
        if position >= len(tasks):
            known = format_count(len(tasks), "task")
            problem = f"there is no task at position {position}; the dataset has {known}."
            raise where.error(problem, "(key)")
        task = tasks[position].id
        stored = raw if isinstance(raw, dict) else {}
        found[task] = UpstreamPair(
            trace=_read_scored(stored, "prediction", mode, where),
            gold=_read_scored(stored, "gold", mode, where),
        )
        findings += _find_odd_steps(stored.get("prediction"), mode, Location(where.file, task))
    paths = portable_paths(task.attachments for task in tasks)
    units = []
    for entry in tasks:
        pair = found.get(entry.id)
        trace = None if pair is None else mark_dummies(_make_portable(pair.trace, paths))
        digests = task_digests(dataset, entry.id)
        units.append(AtomicUnit(task=entry, trace=trace, upstream=pair, digests=digests))
        if pair is not None:
            where = Location(source.name, entry.id)
            findings += _find_dummies(trace or (), where)
            gold = _make_portable(pair.gold, paths)
            stated = [step for step in gold if isinstance(step, CallStep | AnswerStep)]
            findings += _find_other_gold(reference_steps(entry), stated, where)
    return Predictions(tuple(units), tuple(findings))


def _read_positions(source: Path) -> Iterator[tuple[int, Location, JsonValue]]:
    """Every entry with its position in the dataset; each part continues where the last ended."""
    offset = 0
    for file in _list_parts(source):
        last = -1
        for key, raw in read_entries(file, allow_nan=True).items():
            where = Location(file.name, key)
            if not key.isdecimal():
                raise where.error("the key is not a position.", "(key)")
            last = max(last, int(key))
            yield offset + int(key), where, raw
        offset += last + 1


def _list_parts(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    where = Location(str(source))
    numbered = {
        int(match["number"]): file
        for file in sorted(source.glob("*.json"))
        if (match := PART.fullmatch(file.name))
    }
    if not numbered:
        raise where.error("there is no prediction file or part (`<name>_0.json`).")
    missing = sorted(set(range(max(numbered) + 1)) - numbered.keys())
    if missing:
        raise where.error(f"part {missing[0]} of {len(numbered)} is missing.")
    return [numbered[number] for number in sorted(numbered)]


def _read_scored(stored: Mapping[str, JsonValue], name: str, mode: Mode, where: Location) -> Trace:
    value = _first_turn(stored.get(name), mode)
    try:
        return read_trace(value)
    except ValueError as exc:
        nested = isinstance(value, list) and any(isinstance(item, list) for item in value)
        hint = " Is it a file of the other --mode?" if nested else ""
        raise where.error(f"{_describe_error(exc)}{hint}", name) from exc


def _describe_error(exc: ValueError) -> str:
    return "cannot be read." if isinstance(exc, ValidationError) else str(exc)


def _first_turn(value: JsonValue, mode: Mode) -> JsonValue:
    """The steps that are scored: end to end, those of the first user turn, as published."""
    if mode == "end-to-end" and isinstance(value, list) and value and isinstance(value[0], list):
        return value[0]
    return value


def _find_odd_steps(stored: JsonValue, mode: Mode, where: Location) -> Iterator[Finding]:
    """Parts of a prediction that are not scored, or not read as they are written."""
    scored = _first_turn(stored, mode)
    problems = describe_odd(scored)
    if scored is not stored and isinstance(stored, list) and len(stored) > 1:
        turns = format_count(len(stored) - 1, "further user turn")
        problems.append(f"the first user turn is scored; {turns} dropped")
    for problem in problems:
        yield where.finding("odd-prediction", f"{problem}.", field="prediction")


def _make_portable(trace: Trace, paths: Mapping[str, str]) -> Trace:
    """The same steps with the dataset's files under their portable paths."""
    steps: list[PredictedStep] = []
    for step in trace:
        if isinstance(step, CallStep) and isinstance(step.arguments, dict):
            arguments = {name: _make_path(value, paths) for name, value in step.arguments.items()}
            steps.append(step.model_copy(update={"arguments": arguments}))
        else:
            steps.append(step)
    return tuple(steps)


def _make_path(value: JsonValue, paths: Mapping[str, str]) -> JsonValue:
    """The portable path of a file of the dataset, in any folder; other values unchanged."""
    if not isinstance(value, str):
        return value
    parts = value.split("/")
    tails = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((paths[tail] for tail in tails if tail in paths), value)


def _find_dummies(trace: Trace, where: Location) -> Iterator[Finding]:
    """A finding for a task in which a dummy reply replaced a tool's."""
    calls = [step for step in trace if isinstance(step, CallStep)]
    dummies = sum(call.error is not None and call.error.type == UNAVAILABLE for call in calls)
    if dummies:
        message = (
            f"{dummies} of {format_count(len(calls), 'call')} reached no tool: the pipeline "
            f"answered {DUMMY_REPLY!r} instead. `strict` counts them as failed."
        )
        yield where.finding("dummy-reply", message, field="prediction")


def _find_other_gold(
    reference: Trace, stored: Sequence[object], where: Location
) -> Iterator[Finding]:
    """Differences between the file's references and the dataset's, apart from folders in paths."""
    start = "the reference stored in the file"
    if len(reference) != len(stored):
        message = f"{start} has {format_count(len(stored), 'step')}, not {len(reference)}."
        yield where.finding("gold-differs", message, field="gold")
    for index, (ours, theirs) in enumerate(zip(reference, stored, strict=False)):
        if ours != theirs:
            message = f"{start} differs from the dataset's."
            yield where.finding("gold-differs", message, field=f"gold.{index}")


class WorkflowPrediction(NamedTuple):
    """What is stored about one task: trace, files, and the judge's verdicts with their root score.

    Upstream attaches every file that a tool's reply names; `files` leaves out the task's inputs.
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
    """Part of a score file; unused keys are ignored."""

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
    """One prediction for every task of the dataset; without a folder, nothing was delivered."""
    if not any((source / f"task{task}").is_dir() for task in dataset.tasks):
        problem = "there is no `task<ID>` folder for a task of the dataset."
        raise Location(str(source)).error(problem)
    return tuple(
        _read_prediction(source / f"task{task.id}", dataset, task)
        for task in dataset.tasks.values()
    )


def _read_prediction(
    folder: Path, dataset: WorkflowDataset, task: WorkflowTask
) -> WorkflowPrediction:
    inputs = [
        (item.path, dataset.root / item.source)
        for item in task.attachments
        if (dataset.root / item.source).is_file()
    ]
    found = WorkflowPrediction(task, inputs=tuple(inputs))
    if not folder.is_dir():
        return found._replace(delivered=False)
    trace = _read_trace_file(folder / PREDICTION, task.id)
    given = {sha256(file) for _, file in inputs}
    attached = folder / ATTACHMENTS
    # Links are not followed: what they point to was not delivered.
    files = sorted(attached.glob("*")) if not attached.is_symlink() else []
    plain = [file for file in files if file.is_file() and not file.is_symlink()]
    found = found._replace(
        trace=trace,
        calls=call_records(trace),
        files=tuple(file for file in plain if sha256(file) not in given),
    )
    if not (folder / SCORES).is_file():
        return found
    where = Location(SCORES, task.id)
    stored = parse(_StoredScores, read_json(folder / SCORES), file=SCORES, task=task.id)
    if len(stored.details) != 1:
        raise where.error(f"has the scores of {len(stored.details)} tasks, not of one.", "details")
    detail = stored.details[0]
    if [leaf.id for leaf in task.leaves()] != [node.id for node in detail.nodes]:
        raise where.error("the scored leaves are not those of the dataset.", "nodes")
    verdicts = tuple(_read_verdict(task, node) for node in detail.nodes)
    return found._replace(verdicts=verdicts, root=detail.score)


def _read_trace_file(file: Path, task: str) -> Trace:
    where = Location(file.name, task)
    entries = list(read_entries(file).values())
    entry = entries[0] if len(entries) == 1 else None
    steps = entry.get("prediction") if isinstance(entry, dict) else None
    if not isinstance(steps, list) or len(steps) != 1 or not isinstance(steps[0], list):
        raise where.error("there must be one entry with one trace.", "prediction")
    try:
        return read_workflow_trace(steps[0])
    except ValueError as exc:
        raise where.error(_describe_error(exc), "prediction") from exc


def read_workflow_trace(steps: Sequence[JsonValue]) -> Trace:
    """Upstream's steps of a Workflow task, where a tool's reply contains the error of the call."""
    plain, failures = [], []
    for step in _spread_calls(steps):
        content = step.get("content") if isinstance(step, dict) else None
        error = content.get("error") if isinstance(content, dict) else None
        if isinstance(step, dict) and isinstance(content, dict):
            # GTA-Atomic's files have the parts only, and none if the call failed.
            step = {**step, "content": content.get("result")}
        plain.append(step)
        failures.append(
            StepError(type=str(error.get("type")), message=str(error.get("msg")))
            if isinstance(error, dict)
            else None
        )
    return mark_dummies(
        tuple(
            step.model_copy(update={"error": step.error or failure})
            if isinstance(step, CallStep)
            else step
            for step, failure in zip_longest(read_trace(plain), failures[1:])
        )
    )


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
                yield replies.pop(_find_reply(call, replies))
        yield from replies


def _is_reply(step: JsonValue) -> bool:
    return isinstance(step, dict) and step.get("role") == "tool"


def _find_reply(call: JsonValue, replies: Sequence[JsonValue]) -> int:
    named = call.get("id") if isinstance(call, dict) else None
    ids = [reply.get("tool_call_id") if isinstance(reply, dict) else None for reply in replies]
    return ids.index(named) if named is not None and named in ids else 0


def call_records(trace: Trace) -> tuple[CallRecord, ...]:
    """The outcome of each call that has a reply; durations were not kept."""
    records = []
    for step, after in pairwise(trace):
        if isinstance(step, CallStep) and isinstance(after, ReplyStep):
            call = CallRecord(tool=step.name, status="done", seconds=0.0, backend=STATED)
            if step.error is not None:
                status = "unavailable" if step.error.type == UNAVAILABLE else "error"
                call = call.model_copy(update={"status": status, "message": step.error.message})
            records.append(call)
    return tuple(records)


def dummy_notes(calls: Sequence[CallRecord]) -> tuple[str, ...]:
    """A note on calls that got a dummy reply; empty if there are none."""
    dummies = sum(call.status == "unavailable" for call in calls)
    if not dummies:
        return ()
    return (
        f"{dummies} of {format_count(len(calls), 'tool call')} reached no tool: the published "
        f"pipeline answered {DUMMY_REPLY!r} instead. They count as not done.",
    )


def _read_verdict(task: WorkflowTask, node: _StoredNode) -> VerdictRow:
    """Unscored if upstream guessed the score from a reply that it did not keep."""
    key = VerdictKey(task=task.id, leaf=node.id, judge=JUDGE)
    if node.analysis in (FALLBACK, FAILED):
        detail = f"upstream took {node.score:g} by its rule for broken replies ({node.analysis})"
        verdict = Unscored(cause=NOT_KEPT, detail=detail)
        return VerdictRow(key=key, verdict=verdict, compat=node.score)
    return VerdictRow(key=key, verdict=Scored(value=node.score, reason=node.analysis))
