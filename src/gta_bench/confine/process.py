"""One process group: fed, read and bounded, and gone when this returns, whatever it did."""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Literal

_Stop = Literal["timeout", "output", "disk", "cancelled"]

TICK = 0.05  # seconds between looks at the clock, the disk and the caller's wish to stop
CHUNK = 1 << 16
DRAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBounds:
    """When a process is stopped.

    Its time begins with the words `ready` on stderr, for which it has `start_seconds`.
    `disk_is_full` is asked with the number of the process.
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
    """A process that is no more; `stopped` says why it had to be killed."""

    status: int
    stdout: bytes
    stderr: bytes
    seconds: float
    stopped: _Stop | None


class _Streams:
    """The three pipes of a process, never waited for longer than a tick."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, bounds: ProcessBounds
    ) -> None:
        self._selector = selectors.DefaultSelector()
        self._input = memoryview(stdin)
        self._caps: dict[IO[bytes], int] = {}
        self.read: dict[IO[bytes], bytearray] = {}
        assert process.stdin and process.stdout and process.stderr
        for stream, cap in (
            (process.stdout, bounds.stdout_bytes),
            (process.stderr, bounds.stderr_bytes),
        ):
            self._caps[stream] = cap
            self.read[stream] = bytearray()
            self._watch(stream, selectors.EVENT_READ)
        self._watch(process.stdin, selectors.EVENT_WRITE)

    def _watch(self, stream: IO[bytes], event: int) -> None:
        os.set_blocking(stream.fileno(), False)
        self._selector.register(stream, event, stream)

    def _drop(self, stream: IO[bytes]) -> None:
        self._selector.unregister(stream)
        stream.close()

    @property
    def reading(self) -> bool:
        """Whether anybody can still write to us."""
        return any(not stream.closed for stream in self.read)

    def move(self, seconds: float) -> bool:
        """Pass on what can be passed on within that time; False once a cap is exceeded."""
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
        except BrokenPipeError:  # it does not want to know; what it says will tell why
            written = len(self._input)
        self._input = self._input[written:]
        if not self._input:
            self._drop(stream)

    def close(self) -> None:
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
    """Run a program to its end, or to ours. Blocks: call it in a thread of its own.

    The thread that starts a child must outlive it, because the child dies with that thread
    (PR_SET_PDEATHSIG), so starting and waiting stay together here. `descriptors` are passed on.
    """
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
    try:
        stopped = _watch(process, streams, bounds)
    finally:
        _kill_group(process)
        _drain(streams)
        streams.close()
    return EndedProcess(
        status=process.returncode,
        stdout=bytes(stdout[: bounds.stdout_bytes]),
        stderr=bytes(stderr[: bounds.stderr_bytes]),
        seconds=time.monotonic() - start,
        stopped=stopped,
    )


def _watch(
    process: subprocess.Popen[bytes], streams: _Streams, bounds: ProcessBounds
) -> _Stop | None:
    """Until the process ends or has to be ended; the reason for the latter."""
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


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and all that it started; inside a PID namespace nothing else is left.

    Right after the end of its leader the group's number cannot have been given away yet.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _drain(streams: _Streams) -> None:
    """What the dead still had to say. Their pipes are closed, so this takes no time."""
    end = time.monotonic() + DRAIN_SECONDS
    while streams.reading and time.monotonic() < end:
        if not streams.move(TICK):
            return
