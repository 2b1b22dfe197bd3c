"""Read benchmark files: strict JSON, safe paths, and file kinds by their leading bytes."""

import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from gta_bench.errors import DatasetError
from gta_bench.records.finding import Finding, Severity

Parsed = TypeVar("Parsed", bound=BaseModel)

TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
UNION_MEMBER = re.compile(r"Released\w+|str|list\[str\]")

KINDS = (
    (re.compile(rb"\xff\xd8\xff"), "jpeg"),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "png"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "webp"),
    (re.compile(rb"GIF8[79]a"), "gif"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "wav"),
    (re.compile(rb"(ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb])"), "mp3"),
    (re.compile(rb"....ftyp", re.DOTALL), "mp4"),
    (re.compile(rb"%PDF-"), "pdf"),
    (re.compile(rb"PK\x03\x04"), "zip"),
)
KIND_OF_SUFFIX = {
    **{f".{kind}": kind for kind in ("jpeg", "png", "webp", "gif", "wav", "mp3", "mp4", "pdf")},
    **{".jpg": "jpeg", ".m4a": "mp4", ".mov": "mp4"},
    **dict.fromkeys((".zip", ".docx", ".xlsx", ".pptx"), "zip"),
}


class Location(NamedTuple):
    """A file of a dataset, or one task in it, to name in errors and findings."""

    file: str
    task: str | None = None

    def error(self, problem: str, field: str | None = None) -> DatasetError:
        """An error to raise about this location."""
        return DatasetError(problem, file=self.file, task=self.task, field=field)

    def finding(
        self, check: str, message: str, *, field: str | None = None, severity: Severity = "warning"
    ) -> Finding:
        """A finding about this location."""
        return Finding(
            check=check,
            severity=severity,
            file=self.file,
            task=self.task,
            field=field,
            message=message,
        )


def read_json(file: Path, *, allow_nan: bool = False) -> JsonValue:
    """The JSON of a file; a file that cannot be read or parsed raises DatasetError.

    A key that occurs twice is an error. `allow_nan` accepts NaN and Infinity, which are not JSON
    but which Python writes.
    """
    where = Location(file.name)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as exc:
        raise where.error(f"cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise where.error(f"is not UTF-8 text (byte {exc.start}).") from exc
    try:
        parsed: JsonValue = json.loads(
            text,
            object_pairs_hook=_refuse_duplicates,
            parse_constant=float if allow_nan else _refuse_constant,
        )
    except _DuplicateKeyError as exc:
        raise where.error("the key occurs twice.", str(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise where.error(f"is not valid JSON: {exc}.{_guess_damage(text)}") from exc
    return parsed


def _guess_damage(text: str) -> str:
    """A sentence on what may have happened to a file that should be JSON."""
    bare = text.strip()
    if bare[:1] not in ("{", "["):
        return " It is another kind of file."
    return "" if bare[-1] in "}]" else " It seems to be cut off: get the file again."


def read_entries(file: Path, *, allow_nan: bool = False) -> dict[str, JsonValue]:
    """The JSON object of a file, whose keys are ids or names."""
    entries = read_json(file, allow_nan=allow_nan)
    if not isinstance(entries, dict):
        problem = f"must be an object keyed by task id, not {type(entries).__name__}."
        raise Location(file.name).error(problem)
    return entries


def read_tasks(file: Path, layout: type[Parsed]) -> dict[str, Parsed]:
    """The tasks of a dataset's file by id; ids name folders later, so they are restricted."""
    tasks = {}
    for task, raw in read_entries(file).items():
        if not TASK_ID.fullmatch(task):
            problem = "a task id has 1 to 64 letters, digits, dots, dashes or underscores."
            raise Location(file.name, task).error(problem, "(key)")
        tasks[task] = parse(layout, raw, file=file.name, task=task)
    return tasks


def parse(layout: type[Parsed], raw: JsonValue, *, file: str, task: str | None = None) -> Parsed:
    """Raw JSON as a released layout; DatasetError names the first wrong field."""
    try:
        return layout.model_validate(raw)
    except ValidationError as exc:
        first = exc.errors()[0]
        # Pydantic names the members of a union in `loc`; a reader looks for JSON keys.
        keys = [str(part) for part in first["loc"] if not UNION_MEMBER.fullmatch(str(part))]
        field = ".".join(keys) or "(whole entry)"
        raise Location(file, task).error(f"{first['msg']}.", field) from exc


def file_kind(file: Path) -> str | None:
    """The kind of a file by its leading bytes; None if they are not known."""
    with file.open("rb") as stream:
        head = stream.read(16)
    return next((kind for pattern, kind in KINDS if pattern.match(head)), None)


def sha256(file: Path) -> str:
    """The file's SHA-256, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _DuplicateKeyError(Exception):
    """A JSON object with the same key twice; Python's parser would silently keep the last one."""


def _refuse_duplicates(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    entries: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in entries:
            raise _DuplicateKeyError(key)
        entries[key] = value
    return entries


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
