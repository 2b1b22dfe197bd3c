"""A folder of finished results: one folder a task, with the final text and the files.

The layout is `<task_id>/final.txt` and `<task_id>/files/**`. Met in practice and read too: folders
called `task_7`, `task7`, `task-007`; the text under another name of `FINAL_NAMES`; deliverables in
`outputs/`, or beside the text; no text at all.
"""

import codecs
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ConfigDict, ValidationError

from gta_bench.confine.files import CHUNK
from gta_bench.confine.names import shown
from gta_bench.content.text import read_text
from gta_bench.errors import DatasetError, ToolError
from gta_bench.harnesses.collecting import LeftOut, Listing, list_files, open_below, problem
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.records.finding import Finding
from gta_bench.records.finished import ResultMeta
from gta_bench.records.steps import AnswerStep

META = "meta.json"
FINAL_NAMES = tuple(
    f"{name}.{suffix}"
    for name in ("final", "final_answer", "answer", "response", "output")
    for suffix in ("txt", "md")
)
FILE_FOLDERS = ("files", "outputs")
FINAL_BYTES = CHUNK
TASK_FOLDER = re.compile(r"(?:task[_ -]?)?(?P<id>.+)", re.IGNORECASE)


class _StatedMeta(ResultMeta):
    """A meta.json as users write it: keys that nobody reads are told, not refused."""

    model_config = ConfigDict(frozen=True, extra="allow")


class _Read(NamedTuple):
    """A small file of a task's folder, or why it was not read."""

    data: bytes | None
    trouble: str = ""


def read_folder(source: Path, tasks: Iterable[str]) -> Finished:
    """What the folder holds of the dataset's tasks; nothing outside it is read."""
    root = source.resolve(strict=True)
    findings: list[Finding] = []
    folders = _task_folders(root, frozenset(tasks), findings)
    if not folders:
        example = "`<task_id>/final.txt`"
        raise DatasetError(
            f"no folder is named by a task of the dataset ({example}).", file=str(source)
        )
    deliveries = {
        task: delivery
        for task, name in folders.items()
        if (delivery := _delivery(root, name, task, findings)) is not None
    }
    return Finished(deliveries, _meta(root, (META,), None, findings), tuple(findings))


def task_of(name: str, tasks: frozenset[str]) -> str | None:
    """The task that a folder's name stands for: its id, also with `task` or zeros before it."""
    if name in tasks:
        return name
    match = TASK_FOLDER.fullmatch(name)
    found = match["id"] if match else name
    bare = found.lstrip("0") or "0"
    return found if found in tasks else bare if bare in tasks and found.isdecimal() else None


def _task_folders(root: Path, tasks: frozenset[str], findings: list[Finding]) -> Mapping[str, str]:
    """The folder's name for each task that has one."""
    folders: dict[str, str] = {}
    for entry in sorted(root.iterdir(), key=lambda entry: entry.name):
        if entry.name == META or entry.name.startswith("."):
            continue
        task = task_of(entry.name, tasks)
        if task is None or not stat.S_ISDIR(entry.lstat().st_mode):
            reason = "no folder of a task of the dataset's; links are not followed"
            findings.append(_finding(entry.name, task, reason))
        elif task in folders:
            raise DatasetError(
                f"{shown(folders[task])} and {shown(entry.name)} are the same task; leave one.",
                file=root.name,
                task=task,
            )
        else:
            folders[task] = entry.name
    return folders


def _delivery(root: Path, name: str, task: str, findings: list[Finding]) -> Delivery | None:
    """What one folder delivers; None where it is empty."""
    final, text = _final(root, name, task, findings)
    listing = _files(root, name, final)
    if final is None and not listing.files:
        findings.append(_finding(name, task, "holds neither a final text nor a file"))
        return None
    if final is None:
        findings.append(_finding(name, task, f"has no final text ({FINAL_NAMES[0]})"))
    return Delivery(
        trace=() if final is None else (AnswerStep(content=text),),
        files=listing.files,
        left_out=listing.left_out,
        meta=_meta(root, (name, META), task, findings),
    )


def _files(root: Path, name: str, final: str | None) -> Listing:
    """The deliverables: in a folder of their own, else all that lies beside the text."""
    for folder in FILE_FOLDERS:
        place = root / name / folder
        if place.is_dir() and not place.is_symlink():
            found = list_files(root, name, folder)
            beside = list_files(root, name, skip=(META, folder, final or ""))
            reason = f"lies beside `{folder}/`, which holds the deliverables"
            others = tuple(LeftOut(file.name, reason) for file in beside.files)
            return Listing(found.files, (*found.left_out, *others))
    return list_files(root, name, skip=(META, final or ""))


def _final(root: Path, name: str, task: str, findings: list[Finding]) -> tuple[str | None, str]:
    """The name of the file with the final text, and the text."""
    for file in FINAL_NAMES:
        read = _small(root, (name, file))
        if read.trouble:
            findings.append(_finding(f"{name}/{file}", task, read.trouble))
        if read.data is None:
            continue
        try:
            content = read_text(read.data)
        except ToolError as exc:
            findings.append(_finding(f"{name}/{file}", task, f"{exc} It counts as empty"))
            return file, ""
        if content.encoding not in ("utf-8", "utf-8-sig"):
            words = f"is not UTF-8; it was read as {content.encoding}"
            findings.append(_finding(f"{name}/{file}", task, words))
        return file, content.text.strip()
    return None, ""


def _meta(
    root: Path, parts: tuple[str, ...], task: str | None, findings: list[Finding]
) -> ResultMeta:
    """What is said about the results, if anything."""
    read, file = _small(root, parts), "/".join(parts)
    if read.trouble:
        findings.append(_finding(file, task, read.trouble))
    if read.data is None:
        return ResultMeta()
    try:
        stated = _StatedMeta.model_validate_json(read.data)
    except ValidationError as exc:
        first = exc.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        raise DatasetError(f"{first['msg']}.", file=file, task=task, field=field) from exc
    unknown = stated.model_extra or {}
    if unknown:
        known = ", ".join(ResultMeta.model_fields)
        words = f"has keys that nobody reads: {', '.join(unknown)} (known: {known})"
        findings.append(_finding(file, task, words))
    return ResultMeta.model_validate(stated.model_dump(exclude=set(unknown)))


def _small(root: Path, parts: tuple[str, ...]) -> _Read:
    """A file's bytes, at most `FINAL_BYTES` of them; neither bytes nor trouble where none is."""
    try:
        with open_below(root, parts) as stream:
            data = stream.read(FINAL_BYTES + 1)
    except FileNotFoundError:
        return _Read(None)
    except OSError as exc:
        return _Read(None, problem(exc))
    if len(data) > FINAL_BYTES:
        words = f"is longer than {FINAL_BYTES} bytes; the rest is cut off"
        return _Read(_whole_characters(data[:FINAL_BYTES]), words)
    return _Read(data)


def _whole_characters(data: bytes) -> bytes:
    """Without the first bytes of a character that was cut in two."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data).encode()
    except UnicodeDecodeError:
        return data


def _finding(file: str, task: str | None, problem: str) -> Finding:
    return Finding(
        check="finished-results", severity="warning", file=file, task=task, message=f"{problem}."
    )
