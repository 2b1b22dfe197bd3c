"""What a system delivered: every file below its folder, kept by content under its own name."""

import os
from pathlib import Path
from typing import NamedTuple

from gta_bench.confine import files as confined
from gta_bench.confine.workspace import Quota
from gta_bench.records.deliverables import Deliverable
from gta_bench.runs.artefacts import ArtefactStore


class Collected(NamedTuple):
    """The files by path, and what was not kept with the reason."""

    deliverables: tuple[Deliverable, ...]
    left: tuple[str, ...]


def collect_deliverables(
    folder: Path, files: ArtefactStore, *, quota: Quota | None = None
) -> Collected:
    """Keep every regular file below a folder, no link followed, in the order of their paths."""
    bounds = quota or Quota()
    found: list[Deliverable] = []
    left: list[str] = []
    room = bounds.total_bytes
    for entry in sorted(confined.walk(folder), key=lambda entry: entry.path):
        if entry.is_dir(follow_symlinks=False):
            continue
        path = _portable(entry.path, folder)
        if len(found) >= bounds.files:
            left.append(f"{path}: more than {bounds.files} files")
            continue
        data = _content(entry.path, min(room, bounds.file_bytes))
        if data is None:
            left.append(f"{path}: no regular file, or too large")
            continue
        room -= len(data)
        found.append(Deliverable(path=path, digest=files.keep(data), size=len(data)))
    return Collected(tuple(found), tuple(left))


def _content(path: str, most: int) -> bytes | None:
    try:
        with confined.open_regular(path) as stream:
            return confined.read_bounded(stream, most)
    except OSError:
        return None


def _portable(path: str, folder: Path) -> str:
    """The path from the folder on; a name that is no text gets marks for what cannot be read."""
    relative = Path(path).relative_to(folder).as_posix()
    return os.fsencode(relative).decode("utf-8", "replace")
