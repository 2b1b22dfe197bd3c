"""Reading benchmark files: JSON without surprises, portable paths, kinds by leading bytes."""

import hashlib
import json
import re
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from gta_bench.errors import DatasetError

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
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".png": "png",
    ".webp": "webp",
    ".gif": "gif",
    ".wav": "wav",
    ".mp3": "mp3",
    ".mp4": "mp4",
    ".m4a": "mp4",
    ".mov": "mp4",
    ".pdf": "pdf",
    ".zip": "zip",
    ".docx": "zip",
    ".xlsx": "zip",
    ".pptx": "zip",
}


def read_json(file: Path, *, allow_nan: bool = False) -> JsonValue:
    """The JSON of a file, or a DatasetError that says what is wrong with it.

    `allow_nan` takes NaN and Infinity, which JSON does not have but Python writes.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as exc:
        raise DatasetError(f"cannot be read: {exc.strerror}.", file=file.name) from exc
    except UnicodeDecodeError as exc:
        raise DatasetError(f"is not UTF-8 text (byte {exc.start}).", file=file.name) from exc
    try:
        parsed: JsonValue = json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=float if allow_nan else _no_constant,
        )
    except _DuplicateKeyError as exc:
        raise DatasetError("the key stands twice.", file=file.name, field=str(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise DatasetError(f"is not valid JSON: {exc}.{_guess(text)}", file=file.name) from exc
    return parsed


def _guess(text: str) -> str:
    """What may have happened to a file that should be JSON."""
    bare = text.strip()
    if bare[:1] not in ("{", "["):
        return " It is another kind of file."
    return "" if bare[-1] in "}]" else " It seems to be cut off: get the file again."


def read_entries(file: Path, *, allow_nan: bool = False) -> dict[str, JsonValue]:
    """The JSON object of a file, whose keys are ids or names."""
    entries = read_json(file, allow_nan=allow_nan)
    if not isinstance(entries, dict):
        raise DatasetError(
            f"must be an object keyed by task id, not {type(entries).__name__}.", file=file.name
        )
    return entries


def parse(layout: type[Parsed], raw: JsonValue, *, file: str, task: str | None = None) -> Parsed:
    """Raw JSON as a released layout, or a DatasetError that names the first wrong field."""
    try:
        return layout.model_validate(raw)
    except ValidationError as exc:
        first = exc.errors()[0]
        # Pydantic names the members of a union in the place; a reader looks for JSON keys.
        keys = [str(part) for part in first["loc"] if not UNION_MEMBER.fullmatch(str(part))]
        field = ".".join(keys) or "(whole entry)"
        raise DatasetError(f"{first['msg']}.", file=file, task=task, field=field) from exc


def check_task_id(task: str, *, file: str) -> None:
    """Task ids name folders later, so they are plain words."""
    if not TASK_ID.fullmatch(task):
        raise DatasetError(
            "a task id has 1 to 64 letters, digits, dots, dashes or underscores.",
            file=file,
            task=task,
            field="(key)",
        )


def check_source(source: str, *, file: str, task: str, field: str) -> None:
    """A file's place in the dataset: relative, below the folder, one spelling."""
    path = PurePosixPath(source)
    plain = not any(char in source for char in "\\\0") and source == str(path)
    if not plain or path.is_absolute() or ".." in path.parts or not path.name:
        raise DatasetError(
            f"{source!r} is not a relative path inside the dataset.",
            file=file,
            task=task,
            field=field,
        )


def file_kind(file: Path) -> str | None:
    """What the leading bytes say the file is, or None where they say nothing known."""
    with file.open("rb") as stream:
        head = stream.read(16)
    return next((kind for pattern, kind in KINDS if pattern.match(head)), None)


def sha256(file: Path) -> str:
    """The file's SHA-256, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _DuplicateKeyError(Exception):
    """A JSON object with the same key twice; Python's parser would keep the last in silence."""


def _no_duplicates(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    entries: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in entries:
            raise _DuplicateKeyError(key)
        entries[key] = value
    return entries


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
