"""Readers of finished results: a folder with one folder per task, or upstream's eval pack.

The layout of a folder is `<task_id>/final.txt` and `<task_id>/files/**`. Variants that occur in
practice are read as well: folders named `task_7`, `task7` or `task-007`; the text under another
name of `FINAL_NAMES`; deliverables in `outputs/`, or next to the text; no text at all.

An eval pack (schema_version 1) has the texts inside, and the deliverables as paths.
"""

import codecs
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ConfigDict, JsonValue, ValidationError

from gta_bench.confine.files import CHUNK
from gta_bench.confine.names import is_plain, quote_foreign
from gta_bench.content.text import read_text
from gta_bench.datasets.files import parse, read_json
from gta_bench.datasets.upstream import call_records, read_workflow_trace
from gta_bench.errors import DatasetError, ToolError
from gta_bench.harnesses import collecting
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.records.atomic import AtomicTask
from gta_bench.records.finding import Finding
from gta_bench.records.finished import PACK_VERSION, Pack, PackMeta, PackTask, ResultMeta
from gta_bench.records.steps import AnswerStep, StepError, Trace
from gta_bench.records.workflow import WorkflowTask

META = "meta.json"
FINAL_NAMES = tuple(
    f"{name}.{suffix}"
    for name in ("final", "final_answer", "answer", "response", "output")
    for suffix in ("txt", "md")
)
FILE_FOLDERS = ("files", "outputs")
FINAL_BYTES = CHUNK
TASK_FOLDER = re.compile(r"(?:task[_ -]?)?(?P<id>.+)", re.IGNORECASE)
MOST_BYTES = 512 << 20
# Texts with which upstream's runners report that a system gave no answer at all.
CRASH = re.compile(r"\[LagentAgentError\]|\(error\)")
DRIVE = re.compile(r"[A-Za-z]:")


class _StatedMeta(ResultMeta):
    """A meta.json as users write it: unknown keys are reported, not rejected."""

    model_config = ConfigDict(frozen=True, extra="allow")


def read_folder(source: Path, tasks: Iterable[str]) -> Finished:
    """Read the folder's results for the dataset's tasks; nothing outside the folder is read."""
    root = source.resolve(strict=True)
    findings: list[Finding] = []
    folders = _find_folders(root, frozenset(tasks), findings)
    if not folders:
        raise DatasetError(
            "contains no folder with the name of a task of the dataset (`<task_id>/final.txt`).",
            file=str(source),
        )
    deliveries = {
        task: delivery
        for task, name in folders.items()
        if (delivery := _read_task(root, name, task, findings)) is not None
    }
    return Finished(deliveries, _read_meta(root, (META,), None, findings), tuple(findings))


def find_task(name: str, tasks: frozenset[str]) -> str | None:
    """Return the task of a folder's name: its id, possibly after `task` or zeros."""
    if name in tasks:
        return name
    match = TASK_FOLDER.fullmatch(name)
    found = match["id"] if match else name
    bare = found.lstrip("0") or "0"
    return found if found in tasks else bare if bare in tasks and found.isdecimal() else None


def _find_folders(root: Path, tasks: frozenset[str], findings: list[Finding]) -> Mapping[str, str]:
    """Return the folder's name for each task that has one."""
    folders: dict[str, str] = {}
    for entry in sorted(root.iterdir(), key=lambda entry: entry.name):
        if entry.name == META or entry.name.startswith("."):
            continue
        task = find_task(entry.name, tasks)
        if task is None or not stat.S_ISDIR(entry.lstat().st_mode):
            reason = "is not the folder of a task of the dataset; links are not followed."
            findings.append(_finding(entry.name, task, reason))
        elif task in folders:
            raise DatasetError(
                f"{quote_foreign(folders[task])} and {quote_foreign(entry.name)} "
                "are the same task; remove one.",
                file=root.name,
                task=task,
            )
        else:
            folders[task] = entry.name
    return folders


def _read_task(root: Path, name: str, task: str, findings: list[Finding]) -> Delivery | None:
    """Return what one folder delivers; None if it is empty."""
    final, text = _read_final(root, name, task, findings)
    listing = _list_deliverables(root, name, final)
    if final is None and not listing.files:
        findings.append(_finding(name, task, "contains neither a final text nor a file."))
        return None
    if final is None:
        findings.append(_finding(name, task, f"has no final text ({FINAL_NAMES[0]})."))
    return Delivery(
        trace=() if final is None else (AnswerStep(content=text),),
        files=listing.files,
        left_out=listing.left_out,
        meta=_read_meta(root, (name, META), task, findings),
    )


def _list_deliverables(root: Path, name: str, final: str | None) -> collecting.Listing:
    """Return the files in a folder for deliverables, or else all files next to the text."""
    for folder in FILE_FOLDERS:
        path = root / name / folder
        if path.is_dir() and not path.is_symlink():
            found = collecting.list_files(root, name, folder)
            beside = collecting.list_files(root, name, skip=(META, folder, final or ""))
            reason = f"is next to `{folder}/`, which has the deliverables"
            others = tuple(collecting.LeftOut(file.name, reason) for file in beside.files)
            return collecting.Listing(found.files, (*found.left_out, *others))
    return collecting.list_files(root, name, skip=(META, final or ""))


def _read_final(
    root: Path, name: str, task: str, findings: list[Finding]
) -> tuple[str | None, str]:
    """Return the name of the file with the final text, and the text."""
    for file in FINAL_NAMES:
        data, problem = _read_small(root, (name, file))
        if problem:
            findings.append(_finding(f"{name}/{file}", task, f"{problem}."))
        if data is None:
            continue
        try:
            content = read_text(data)
        except ToolError as exc:
            findings.append(_finding(f"{name}/{file}", task, f"{exc} It counts as empty."))
            return file, ""
        if content.encoding not in ("utf-8", "utf-8-sig"):
            reason = f"is not UTF-8; it was read as {content.encoding}."
            findings.append(_finding(f"{name}/{file}", task, reason))
        return file, content.text.strip()
    return None, ""


def _read_meta(
    root: Path, parts: tuple[str, ...], task: str | None, findings: list[Finding]
) -> ResultMeta:
    """Return what a meta.json states about the results; an empty record without the file."""
    (data, problem), file = _read_small(root, parts), "/".join(parts)
    if problem:
        findings.append(_finding(file, task, f"{problem}."))
    if data is None:
        return ResultMeta()
    try:
        stated = _StatedMeta.model_validate_json(data)
    except ValidationError as exc:
        first = exc.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        raise DatasetError(f"{first['msg']}.", file=file, task=task, field=field) from exc
    unknown = stated.model_extra or {}
    if unknown:
        known = ", ".join(ResultMeta.model_fields)
        reason = f"has unknown keys, which are ignored: {', '.join(unknown)} (known: {known})."
        findings.append(_finding(file, task, reason))
    return ResultMeta.model_validate(stated.model_dump(exclude=set(unknown)))


def _read_small(root: Path, parts: tuple[str, ...]) -> tuple[bytes | None, str]:
    """Return at most `FINAL_BYTES` of a file, and a problem with it.

    There is neither data nor a problem if the file does not exist.
    """
    try:
        with collecting.open_below(root, parts) as stream:
            data = stream.read(FINAL_BYTES + 1)
    except FileNotFoundError:
        return None, ""
    except OSError as exc:
        return None, collecting.explain_unread(exc)
    if len(data) <= FINAL_BYTES:
        return data, ""
    data = data[:FINAL_BYTES]
    with suppress(UnicodeDecodeError):  # drops the first bytes of a character that was cut in two
        data = codecs.getincrementaldecoder("utf-8")().decode(data).encode()
    return data, f"is longer than {FINAL_BYTES} bytes; the rest is cut off"


def read_pack(
    file: Path, tasks: Mapping[str, AtomicTask | WorkflowTask], *, root: Path | None = None
) -> Finished:
    """Read the results in a pack; attachments are read only below `root` (the pack's folder)."""
    pack, entries = _parse_pack(file)
    base = (root or file.parent).absolute()
    deliveries: dict[str, Delivery] = {}
    findings = []
    for position, raw in enumerate(entries):
        entry = parse(PackTask, raw, file=file.name, task=f"tasks.{position}")
        task = str(entry.task_id)
        if task in deliveries:
            raise DatasetError("the task occurs twice; remove one.", file=file.name, task=task)
        if task not in tasks:
            findings.append(_finding(file.name, task, "is not a task of the dataset: left out."))
            continue
        if entry.origin_prompt and tasks[task].request not in "\n".join(entry.origin_prompt):
            findings.append(_finding(file.name, task, "the system got a different request."))
        deliveries[task] = _read_entry(entry, task, base, file)
    if not deliveries:
        raise DatasetError("contains no task of the dataset.", file=file.name)
    # What a pack states about its origin is free text; only the names of the system are read.
    about = pack.generated_from if isinstance(pack.generated_from, dict) else {}
    texts = {key: value for key, value in about.items() if isinstance(value, str)}
    meta = ResultMeta(harness=texts.get("backend"), model=texts.get("model"))
    return Finished(deliveries, meta, tuple(findings))


def _parse_pack(file: Path) -> tuple[Pack, list[JsonValue]]:
    """Return the pack without its tasks, and the unparsed tasks."""
    if not file.is_file() or file.stat().st_size > MOST_BYTES:
        raise DatasetError(f"is not a file of at most {MOST_BYTES} bytes.", file=file.name)
    raw = read_json(file)
    version = raw.get("schema_version") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or version != PACK_VERSION or isinstance(version, bool):
        raise DatasetError(
            f"is {version!r}; only packs of version {PACK_VERSION} can be read.",
            file=file.name,
            field="schema_version",
        )
    entries = raw.get("tasks")
    if isinstance(entries, list):
        return parse(Pack, {**raw, "tasks": []}, file=file.name), entries
    return parse(Pack, raw, file=file.name), []


def _read_entry(entry: PackTask, task: str, base: Path, file: Path) -> Delivery:
    steps = [step for trace in entry.assistant_outputs for one in trace for step in _expand(one)]
    try:
        trace = read_workflow_trace(steps)
    except (ValueError, ValidationError) as exc:
        problem = "cannot be read." if isinstance(exc, ValidationError) else str(exc)
        raise DatasetError(problem, file=file.name, task=task, field="assistant_outputs") from exc
    found = [_locate(text, task, base) for text in entry.attached_files]
    about = entry.meta or PackMeta()
    seconds = about.elapsed_sec if about.call_elapsed_sec is None else about.call_elapsed_sec
    return Delivery(
        trace=_mark_crashes(trace),
        calls=call_records(trace),
        files=tuple(one for one in found if isinstance(one, collecting.FoundFile)),
        left_out=tuple(one for one in found if isinstance(one, collecting.LeftOut)),
        meta=ResultMeta(
            seconds=seconds,
            cost_usd=about.cost_usd,
            model=about.model,
            harness=about.backend,
            harness_version=about.harness_version,
        ),
    )


def _expand(step: dict[str, Any]) -> Iterator[JsonValue]:
    """Yield a step as prediction files have it; packs shorten calls to `tool_calls_summary`."""
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


def _mark_crashes(trace: Trace) -> Trace:
    """Mark answers that are a runner's text for a crash."""
    return tuple(
        step.model_copy(update={"error": StepError(type="crash", message=step.content)})
        if isinstance(step, AnswerStep) and step.error is None and CRASH.match(step.content)
        else step
        for step in trace
    )


def _locate(text: str, task: str, base: Path) -> collecting.FoundFile | collecting.LeftOut:
    """Return where an attachment is below the base, or why it is not read."""
    name = quote_foreign(text)[1:-1]
    path = PurePosixPath(text.replace("\\", "/"))
    if path.is_absolute():
        inside = [root for root in (base, base.resolve()) if path.is_relative_to(root.as_posix())]
        if not inside:
            return collecting.LeftOut(name, f"is outside of {base}; name its folder with --root")
        path = path.relative_to(inside[0].as_posix())
    parts = path.parts
    plain = all(is_plain(unicodedata.normalize("NFC", part)) for part in parts)
    if not parts or not plain or DRIVE.match(parts[0]):
        return collecting.LeftOut(name, f"is not a path below {base}")
    # The name below the task's own folder of files, as in a folder of results; else the last part.
    below = next(
        (
            parts[index + 2 :]
            for index in range(len(parts) - 2)
            if parts[index + 1] in FILE_FOLDERS and find_task(parts[index], frozenset({task}))
        ),
        parts[-1:],
    )
    return collecting.FoundFile(
        base.resolve(), parts, unicodedata.normalize("NFC", "/".join(below))
    )


def _finding(file: str, task: str | None, message: str) -> Finding:
    return Finding(
        check="finished-results", severity="warning", file=file, task=task, message=message
    )
