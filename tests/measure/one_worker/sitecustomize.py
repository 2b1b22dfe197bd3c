"""A fault in one worker of a pool. Python imports this at its start if the path has this folder.

The first worker that starts takes the fault, by making the folder `GTA_TEST_TAKEN`, and leaves its
process id there. `GTA_TEST_CLOCK` moves its clock by so many seconds; `GTA_TEST_TEMP` is the folder
of its temporary files, in which the engine builds its logs.
"""

import datetime
import os
import sys
import tempfile
import time
from pathlib import Path

_Real = datetime.datetime


def take_fault() -> bool:
    """Whether this is the first worker."""
    taken = os.environ.get("GTA_TEST_TAKEN")
    if taken is None or "--multiprocessing-fork" not in sys.orig_argv:
        return False
    try:
        Path(taken).mkdir()
    except FileExistsError:
        return False
    (Path(taken) / "pid").write_text(str(os.getpid()), encoding="utf-8")
    return True


def move_clock(seconds: float) -> None:
    """Move everything that tells the time of day; nothing else has imported it yet."""
    real = time.time

    class Kind(type):
        def __instancecheck__(cls, one: object) -> bool:
            return isinstance(one, _Real)

        def __subclasscheck__(cls, one: type) -> bool:
            return issubclass(one, _Real)

    class Moved(_Real, metaclass=Kind):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> _Real:  # type: ignore[override]
            return _Real.fromtimestamp(real() + seconds, tz)

    vars(time).update(time=lambda: real() + seconds, time_ns=lambda: int((real() + seconds) * 1e9))
    vars(datetime)["datetime"] = Moved


if take_fault():
    if "GTA_TEST_CLOCK" in os.environ:
        move_clock(float(os.environ["GTA_TEST_CLOCK"]))
    if "GTA_TEST_TEMP" in os.environ:
        tempfile.tempdir = os.environ["GTA_TEST_TEMP"]
