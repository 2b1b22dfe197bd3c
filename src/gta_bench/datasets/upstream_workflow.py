"""Results of the published pipeline on GTA-Workflow: a folder of `task<ID>` folders.

Each has `prediction.json`, its files under `attachments`, and where it was judged
`official_rescore_result.json`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile, zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from gta_bench.datasets.files import parse, read_entries, read_json, sha256
from gta_bench.datasets.model import WorkflowDataset
from gta_bench.errors import DatasetError, counted
from gta_bench.metrics.compat.workflow import FAILED, FALLBACK
from gta_bench.records.calls import STATED, CallRecord, CallStatus
from gta_bench.records.steps import CallStep, ReplyStep, StepError, Trace
from gta_bench.records.upstream import DUMMY_REPLY, UNAVAILABLE, mark_dummies, read_trace
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import WorkflowTask

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
