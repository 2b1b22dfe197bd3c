"""Upstream's eval packs (schema_version 1): texts inside, deliverables as paths beside them."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import JsonValue, ValidationError

from gta_bench.confine.names import is_plain, shown
from gta_bench.datasets.files import parse, read_json
from gta_bench.datasets.upstream import call_records, read_workflow_trace
from gta_bench.errors import DatasetError
from gta_bench.harnesses.collecting import FoundFile, LeftOut
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.harnesses.folder import FILE_FOLDERS, task_of
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.finding import Finding
from gta_bench.records.finished import PACK_VERSION, Pack, PackMeta, PackTask, ResultMeta
from gta_bench.records.steps import AnswerStep, StepError, Trace
from gta_bench.records.workflow import WorkflowTask

MOST_BYTES = 512 << 20
# Texts by which upstream's runners say that a system gave no answer at all.
CRASH = re.compile(r"\[LagentAgentError\]|\(error\)")
DRIVE = re.compile(r"[A-Za-z]:")


def read_pack(
    file: Path, tasks: Mapping[str, AtomicTask | WorkflowTask], *, root: Path | None = None
) -> Finished:
    """The pack's deliveries; attachments are read below `root` (the pack's folder) only."""
    whole, entries = _whole(file)
    base = (root or file.parent).absolute()
    deliveries: dict[str, Delivery] = {}
    findings = []
    for position, raw in enumerate(entries):
        entry = parse(PackTask, raw, file=file.name, task=f"tasks.{position}")
        task = str(entry.task_id)
        if task in deliveries:
            raise DatasetError("the task is there twice; leave one.", file=file.name, task=task)
        if task not in tasks:
            findings.append(_finding(file, task, "is not a task of the dataset: left out."))
            continue
        if entry.origin_prompt and tasks[task].request not in "\n".join(entry.origin_prompt):
            findings.append(_finding(file, task, "the system was asked something else."))
        deliveries[task] = _delivery(entry, task, base, file)
    if not deliveries:
        raise DatasetError("holds no task of the dataset.", file=file.name)
    return Finished(deliveries, _provenance(whole.generated_from), tuple(findings))


def _whole(file: Path) -> tuple[Pack, list[JsonValue]]:
    """The pack without its tasks, and those as they stand there."""
    if not file.is_file() or file.stat().st_size > MOST_BYTES:
        raise DatasetError(f"is not a file of at most {MOST_BYTES} bytes.", file=file.name)
    raw = read_json(file)
    version = raw.get("schema_version") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or version != PACK_VERSION or isinstance(version, bool):
        raise DatasetError(
            f"is {version!r}; packs of version {PACK_VERSION} are read.",
            file=file.name,
            field="schema_version",
        )
    entries = raw.get("tasks")
    if isinstance(entries, list):
        return parse(Pack, {**raw, "tasks": []}, file=file.name), entries
    return parse(Pack, raw, file=file.name), []


def _delivery(entry: PackTask, task: str, base: Path, file: Path) -> Delivery:
    steps = [step for trace in entry.assistant_outputs for one in trace for step in _spelled(one)]
    try:
        trace = read_workflow_trace(steps)
    except (ValueError, ValidationError) as exc:
        problem = "cannot be read." if isinstance(exc, ValidationError) else str(exc)
        raise DatasetError(problem, file=file.name, task=task, field="assistant_outputs") from exc
    places = [_place(text, task, base) for text in entry.attached_files]
    return Delivery(
        trace=_without_crashes(trace),
        calls=call_records(trace),
        files=tuple(place for place in places if isinstance(place, FoundFile)),
        left_out=tuple(place for place in places if isinstance(place, LeftOut)),
        meta=_meta(entry.meta),
    )


def _spelled(step: dict[str, Any]) -> Iterator[JsonValue]:
    """A step as prediction files have it; packs shorten calls to `tool_calls_summary`."""
    summary = step.get("tool_calls_summary")
    if not isinstance(summary, list):
        yield step
        return
    for call in summary:
        about = call if isinstance(call, dict) else {}
        function = {"name": about.get("name"), "arguments": about.get("last_arguments")}
        yield {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}
        failed: dict[str, JsonValue] = {"type": "failed", "msg": "the pack says that it failed"}
        yield {"role": "tool", "content": {"error": None if about.get("success") else failed}}


def _without_crashes(trace: Trace) -> Trace:
    """Answers that are a runner's words for a crash are marked as such."""
    return tuple(
        step.model_copy(update={"error": StepError(type="crash", message=step.content)})
        if isinstance(step, AnswerStep) and step.error is None and CRASH.match(step.content)
        else step
        for step in trace
    )


def _place(text: str, task: str, base: Path) -> FoundFile | LeftOut:
    """Where an attachment lies below the base, or why it is not looked for."""
    name = shown(text)[1:-1]
    path = PurePosixPath(text.replace("\\", "/"))
    if path.is_absolute():
        inside = [root for root in (base, base.resolve()) if path.is_relative_to(root.as_posix())]
        if not inside:
            return LeftOut(name, f"lies outside {base}, and --root names no other folder")
        path = path.relative_to(inside[0].as_posix())
    parts = path.parts
    plain = all(is_plain(unicodedata.normalize("NFC", part)) for part in parts)
    if not parts or not plain or DRIVE.match(parts[0]):
        return LeftOut(name, f"is not a path below {base}")
    return FoundFile(base.resolve(), parts, _name(parts, task))


def _name(parts: tuple[str, ...], task: str) -> str:
    """The name below the task's own folder of files, as in a folder of results; else the last."""
    for place in range(len(parts) - 2):
        if parts[place + 1] in FILE_FOLDERS and task_of(parts[place], frozenset({task})):
            return unicodedata.normalize("NFC", "/".join(parts[place + 2 :]))
    return unicodedata.normalize("NFC", parts[-1])


def _meta(stated: PackMeta | None) -> ResultMeta:
    about = stated or PackMeta()
    seconds = about.elapsed_sec if about.call_elapsed_sec is None else about.call_elapsed_sec
    return ResultMeta(
        seconds=seconds,
        cost_usd=about.cost_usd,
        model=about.model,
        harness=about.backend,
        harness_version=about.harness_version,
    )


def _provenance(stated: JsonValue) -> ResultMeta:
    """What a pack says of its origin is free text; only the system's names are read."""
    about = stated if isinstance(stated, dict) else {}
    backend, model = about.get("backend"), about.get("model")
    return ResultMeta(
        harness=backend if isinstance(backend, str) else None,
        model=model if isinstance(model, str) else None,
    )


def _finding(file: Path, task: str, message: str) -> Finding:
    return Finding(
        check="finished-results", severity="warning", file=file.name, task=task, message=message
    )
