"""A run's folder for one process alone."""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from gta_bench.errors import RunError
from gta_bench.runs.store import StorePath

LOCK = ".lock"


@contextmanager
def locked(folder: StorePath, *, patience: float = 0) -> Iterator[None]:
    """The folder for this process alone; a lock ends with its process, however that ends."""
    place = _place(folder)
    place.mkdir(parents=True, exist_ok=True)
    handle = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take(handle, folder, time.monotonic() + patience)
        yield
    finally:
        os.close(handle)


def is_locked(folder: StorePath) -> bool:
    """Whether a process works on the folder now."""
    if not (_place(folder) / LOCK).is_file():
        return False
    try:
        with locked(folder):
            return False
    except RunError:
        return True


def _place(folder: StorePath) -> Path:
    """Where the lock lies. A store has none: it holds among the processes of this machine only."""
    if isinstance(folder, Path):
        return folder
    return Path(tempfile.gettempdir()) / f"gta-lock-{sha256(str(folder).encode()).hexdigest()[:16]}"


def _take(handle: int, folder: StorePath, end: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as exc:
            if time.monotonic() >= end:
                raise RunError(
                    f"Another command works on {folder} now; `gta status` says how far it is."
                ) from exc
            time.sleep(0.2)
