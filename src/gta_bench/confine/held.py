"""What the processes of a job hold: memory, and files that no folder shows any more."""

import stat
from collections.abc import Collection, Iterable, Iterator
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
