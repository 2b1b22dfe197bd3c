"""What the processes of a job hold: memory, and files that no folder shows any more."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path


def descendants(process: int) -> Iterator[str]:
    """A process and all that it started, as this machine numbers them."""
    waiting = [str(process)]
    while waiting:
        yield (number := waiting.pop())
        with suppress(OSError):
            for thread in Path(f"/proc/{number}/task").iterdir():
                waiting += (thread / "children").read_text(encoding="ascii").split()


def unlinked_bytes(processes: Iterable[str], devices: Collection[int]) -> int:
    """The size of files on those devices that are deleted, and take room while they are open."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        with suppress(OSError):  # it ended meanwhile
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):
                    file = descriptor.stat()
                    if file.st_nlink == 0 and file.st_dev in devices and stat.S_ISREG(file.st_mode):
                        sizes[file.st_dev, file.st_ino] = file.st_size
    return sum(sizes.values())


def memory_exceeds(most: int, processes: Sequence[str]) -> bool:
    """Whether they hold more than that; pages that several of them share count once.

    The kernel takes long to share them out, so it is asked only where it can matter.
    """
    return sum(map(_resident, processes)) > most and sum(map(_share, processes)) > most


def _resident(process: str) -> int:
    """Bytes of memory that a process holds now."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _share(process: str) -> int:
    """The same, of a page that n processes have the n-th part; all of it where that is not seen."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _resident(process)
