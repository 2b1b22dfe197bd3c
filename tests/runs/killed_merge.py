"""Merges copies of a run, each killed at another point: `killed_merge.py RUN COPIES`.

One copy is killed before each change of a file or folder, and some in the middle of a write.
"""

import os
import resource
import shutil
import signal
import sys
from pathlib import Path

from tests.runs.test_merge import merge

CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "shutil.rmtree")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
BYTES = (0, 100, 1000, 5000)


def die_at_change(number: int, run: Path) -> None:
    left = [number]

    def count(event: str, arguments: tuple[object, ...]) -> None:
        change = event in CHANGES or (event == "open" and int(str(arguments[2])) & WRITING)
        if change and str(run) in str(arguments[0]):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    sys.addaudithook(count)


def die_at_byte(number: int) -> None:
    """The kernel ends a process that writes more than its limit, after what it may write."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))


def is_killed(run: Path, *, change: int | None = None, byte: int | None = None) -> bool:
    """Merge in a process of its own, and return whether it was killed."""
    child = os.fork()
    if child == 0:
        if change is not None:
            die_at_change(change, run)
        if byte is not None:
            die_at_byte(byte)
        merge(run)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def main(run: Path, copies: Path) -> None:
    for byte in BYTES:
        copy = copies / f"byte-{byte}"
        shutil.copytree(run, copy)
        assert is_killed(copy, byte=byte), byte
    number, killed = 0, True
    while killed:
        copy = copies / f"change-{number}"
        shutil.copytree(run, copy)
        killed = is_killed(copy, change=number)
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
