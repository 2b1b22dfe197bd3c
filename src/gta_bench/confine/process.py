"""Run one process group within bounds, and measure what its processes use.

The group is always killed before `run` returns.
"""

import os
import selectors
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from gta_bench.confine.systems import require_linux

ProcessStop = Literal["timeout", "output", "disk", "cancelled"]

TICK = 0.05  # seconds between checks of the clock, the disk and cancellation
CHUNK = 1 << 16
DRAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBounds:
    """When a process is stopped.

    `wall_seconds` count from the bytes `ready` on stderr, which must come within `start_seconds`.
    `disk_is_full` is called with the process id.
    """

    wall_seconds: float
    start_seconds: float
    ready: bytes
    stdout_bytes: int
    stderr_bytes: int
    disk_is_full: Callable[[int], bool] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedProcess:
    """The output and status of a process; `stopped` says why it had to be killed, if it was.

    `processor_seconds` are those of a process whose time was over.
    """

    status: int
    stdout: bytes
    stderr: bytes
    seconds: float
    stopped: ProcessStop | None
    processor_seconds: float = 0.0


class _Streams:
    """The three pipes of a process; no call waits longer than it was asked to."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, bounds: ProcessBounds
    ) -> None:
        self._selector = selectors.DefaultSelector()
        self._input = memoryview(stdin)
        assert process.stdin and process.stdout and process.stderr
        self._caps = {process.stdout: bounds.stdout_bytes, process.stderr: bounds.stderr_bytes}
        self.read = {stream: bytearray() for stream in self._caps}
        for stream in (*self.read, process.stdin):
            os.set_blocking(stream.fileno(), False)
            event = selectors.EVENT_READ if stream in self.read else selectors.EVENT_WRITE
            self._selector.register(stream, event, stream)

    def _drop(self, stream: IO[bytes]) -> None:
        self._selector.unregister(stream)
        stream.close()

    @property
    def reading(self) -> bool:
        """Whether any process can still write to stdout or stderr."""
        return any(not stream.closed for stream in self.read)

    def move(self, seconds: float) -> bool:
        """Read and write what is possible within that time; False once a cap is exceeded."""
        for key, _ in self._selector.select(seconds):
            stream: IO[bytes] = key.data
            if stream in self.read:
                self._take(stream)
            else:
                self._give(stream)
        return all(len(data) <= self._caps[stream] for stream, data in self.read.items())

    def _take(self, stream: IO[bytes]) -> None:
        data = os.read(stream.fileno(), CHUNK)
        self.read[stream] += data
        if not data:
            self._drop(stream)

    def _give(self, stream: IO[bytes]) -> None:
        try:
            written = os.write(stream.fileno(), self._input[:CHUNK]) if self._input else 0
        except BrokenPipeError:  # it closed stdin; its output and status tell why
            written = len(self._input)
        self._input = self._input[written:]
        if not self._input:
            self._drop(stream)

    def close(self) -> None:
        """Collect what the killed processes had written, then close every pipe."""
        end = time.monotonic() + DRAIN_SECONDS
        while self.reading and time.monotonic() < end and self.move(TICK):
            pass
        for key in list(self._selector.get_map().values()):
            self._drop(key.data)
        self._selector.close()


def run(
    argv: Sequence[str],
    *,
    stdin: bytes,
    environment: Mapping[str, str],
    cwd: str,
    bounds: ProcessBounds,
    descriptors: Sequence[int] = (),
) -> EndedProcess:
    """Run a program until it ends or exceeds its bounds. Blocks, so call it in its own thread.

    The thread that starts a child must outlive it, because the child dies with that thread
    (PR_SET_PDEATHSIG); so the same call starts and waits. `descriptors` are passed to the child.
    """
    require_linux()
    start = time.monotonic()
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        cwd=cwd,
        start_new_session=True,
        pass_fds=descriptors,
        bufsize=0,
    )
    streams = _Streams(process, stdin, bounds)
    stdout, stderr = streams.read.values()
    used = 0.0
    try:
        stopped = _watch(process, streams, bounds)
        if stopped == "timeout":
            used = sum(map(_processor_seconds, list_descendants(process.pid)))
    finally:
        # Inside a PID namespace this kills everything. Right after the end of its leader, the
        # number of the group cannot have been reused yet.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        streams.close()
    return EndedProcess(
        status=process.returncode,
        stdout=bytes(stdout[: bounds.stdout_bytes]),
        stderr=bytes(stderr[: bounds.stderr_bytes]),
        seconds=time.monotonic() - start,
        stopped=stopped,
        processor_seconds=used,
    )


def _watch(
    process: subprocess.Popen[bytes], streams: _Streams, bounds: ProcessBounds
) -> ProcessStop | None:
    """Wait until the process ends (None) or must be stopped, and return the cause."""
    _, stderr = streams.read.values()
    ready = not bounds.ready
    deadline = time.monotonic() + (bounds.wall_seconds if ready else bounds.start_seconds)
    next_look = 0.0
    while process.poll() is None:
        now = time.monotonic()
        if not ready and bounds.ready in stderr:
            ready, deadline = True, now + bounds.wall_seconds
        if now >= deadline:
            return "timeout"
        if bounds.cancelled.is_set():
            return "cancelled"
        if bounds.disk_is_full is not None and now >= next_look:
            next_look = now + TICK
            if bounds.disk_is_full(process.pid):
                return "disk"
        if not streams.move(TICK):
            return "output"
        if not streams.reading:  # it closed its outputs: most likely it is ending
            with suppress(subprocess.TimeoutExpired):
                process.wait(TICK)
    return None


def list_descendants(process: int) -> Iterator[str]:
    """The ids of a process and of everything it started, as the host numbers them."""
    waiting = [str(process)]
    while waiting:
        yield (number := waiting.pop())
        with suppress(OSError):
            for thread in Path(f"/proc/{number}/task").iterdir():
                waiting += (thread / "children").read_text(encoding="ascii").split()


def count_deleted_bytes(processes: Iterable[str], devices: Collection[int]) -> int:
    """The size of deleted files on those devices that processes keep open, so use disk space."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        with suppress(OSError):  # it ended meanwhile
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):
                    file = descriptor.stat()
                    if file.st_nlink == 0 and file.st_dev in devices and stat.S_ISREG(file.st_mode):
                        sizes[file.st_dev, file.st_ino] = file.st_size
    return sum(sizes.values())


def _processor_seconds(process: str) -> float:
    """Return the processor time of a process and of those that it started and that have ended."""
    try:
        line = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:  # it ended meanwhile
        return 0.0
    # The name of the program, in brackets, may have spaces and brackets.
    after = line.rpartition(")")[2].split()
    return sum(map(int, after[11:15])) / os.sysconf("SC_CLK_TCK")


def memory_exceeds(most: int, processes: Sequence[str]) -> bool:
    """Whether the processes use more memory than that; pages that they share count once.

    Computing shares is slow in the kernel, so it is done only if the plain sum is too large.
    """
    resident = sum(map(_resident_bytes, processes))
    return resident > most and sum(map(_shared_bytes, processes)) > most


def _resident_bytes(process: str) -> int:
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _shared_bytes(process: str) -> int:
    """Resident bytes, with an n-th of a page that n processes share if the kernel shows that."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _resident_bytes(process)
