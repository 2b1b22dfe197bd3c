"""Canaries: a line in the files of a published dataset that must never turn up in any output.

The line is a comment or a part of the README, so no digest of a task depends on it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

from gta_bench.datasets.folders import TASK_FILE, find_task_folders
from gta_bench.errors import DatasetError

README: Final = "README.md"
_CANARY: Final = re.compile(r"gta-bench canary ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_LINE: Final = "gta-bench canary {}: benchmark data, keep it out of training corpora."


def read_canaries(root: Path) -> tuple[str, ...]:
    """Return the canaries in a dataset's README and tasks: one, unless it was put together."""
    files = (file for file in _marked_files(root) if file.is_file() and not file.is_symlink())
    texts = (file.read_bytes().decode(errors="replace") for file in files)
    return tuple(dict.fromkeys(one for text in texts for one in _CANARY.findall(text)))


def mark_dataset(root: Path, canary: str | None = None) -> tuple[str, int]:
    """Write the dataset's canary into files that lack one; return it, and how many were written.

    A dataset without a canary gets the given one, or a new one. The released layout, which is JSON,
    has it in its README only.
    """
    canary = next(iter(read_canaries(root)), canary) or str(uuid4())
    written = 0
    for file in _marked_files(root):
        text = _read(file) if file.exists() or file.is_symlink() else ""
        if _CANARY.search(text):
            continue
        line = _LINE.format(canary)
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        comment = f"# {line}\n" if file.name == TASK_FILE else f"{line}\n"
        file.write_bytes(f"{text}{gap}{comment}".encode())
        written += 1
    return canary, written


def _marked_files(root: Path) -> Iterator[Path]:
    yield root / README
    for folder in find_task_folders(root):
        yield folder / TASK_FILE


def _read(file: Path) -> str:
    if file.is_symlink():
        raise DatasetError("is a link; put the file itself into the dataset.", file=str(file))
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as exc:
        problem = f"is not UTF-8 text (byte {exc.start}); save it as UTF-8."
        raise DatasetError(problem, file=str(file)) from exc
