"""Work for tests of backends; workers import it by name."""

import os
import signal
import time
from pathlib import Path

from gta_bench.errors import RunError


def note(item: tuple[str, str]) -> None:
    """Leave a file, so that others see what was done."""
    folder, name = item
    (Path(folder) / name).write_text(str(os.getpid()), encoding="utf-8")


def note_slowly(item: tuple[str, str]) -> None:
    note(item)
    time.sleep(60)


class SlowImport:
    """Work that takes a while to arrive in the worker, as the first import of a package does."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, str]) -> None:
        vars(self).update(state)
        (Path(self.folder) / "importing").touch()
        time.sleep(3)

    def __call__(self, item: str) -> None:
        (Path(self.folder) / "worked").touch()
        time.sleep(60)


def fail(item: tuple[str, str]) -> None:
    if item[1] == "bad":
        raise RunError("This part is bad.")
    if item[1] == "full":
        raise OSError(28, "No space left on device", "/somewhere")
    note(item)


def die_once(item: tuple[str, str]) -> None:
    """The first attempt is killed, as by a machine without memory."""
    mark = Path(item[0]) / f"{item[1]}.died"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    note(item)


def die(item: tuple[str, str]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
