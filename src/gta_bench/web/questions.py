"""The pictures of a question, from the dataset, if its files are those that the run had."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from gta_bench.records.digests import content_digest
from gta_bench.records.files import Attachment
from gta_bench.records.units import AtomicUnit, WorkflowUnit

SUFFIXES: Final = frozenset({".jpg", ".jpeg", ".png", ".webp"})
LARGEST: Final = 20_000_000
MOST: Final = 4


class QuestionPicture(NamedTuple):
    """An input file of a task that is a picture: its path and content."""

    path: str
    data: bytes


class QuestionSource:
    """The folder of a dataset; None if there is none on this machine."""

    def __init__(self, root: Path | None) -> None:
        self._root = None if root is None or not root.is_dir() else root.resolve()

    def pictures(self, unit: AtomicUnit | WorkflowUnit) -> list[QuestionPicture]:
        """Return the pictures of a unit's question; none if a file is not the one it had."""
        if self._root is None or not any(map(_is_picture, unit.task.attachments)):
            return []
        files = {item.path: self._read(item) for item in unit.task.attachments}
        if not _are_same(unit, files):
            return []
        return list(_select(unit.task.attachments, files))

    def _read(self, item: Attachment) -> bytes | None:
        """Return the content of a file below the folder; None if there is none, or a huge one."""
        assert self._root is not None
        file = (self._root / item.source).resolve()
        if not file.is_relative_to(self._root) or not file.is_file():
            return None
        return file.read_bytes() if file.stat().st_size <= LARGEST else None


NO_QUESTIONS: Final = QuestionSource(None)


def _is_picture(item: Attachment) -> bool:
    return Path(item.source).suffix.lower() in SUFFIXES


def _are_same(unit: AtomicUnit | WorkflowUnit, files: dict[str, bytes | None]) -> bool:
    found = {
        path: None if data is None else hashlib.sha256(data).hexdigest()
        for path, data in files.items()
    }
    kept = {file.path: file.digest for file in unit.inputs}
    if kept:
        return all(kept.get(path) == digest for path, digest in found.items())
    known = None if unit.digests is None else unit.digests.inputs
    return known is not None and known == content_digest(dict(found))


def _select(
    items: tuple[Attachment, ...], files: dict[str, bytes | None]
) -> Iterator[QuestionPicture]:
    shown = [item for item in items if _is_picture(item)][:MOST]
    for item in shown:
        data = files[item.path]
        if data is not None:
            yield QuestionPicture(item.path, data)
