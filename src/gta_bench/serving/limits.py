"""Limits of the server for each client: sizes, times, request rate, concurrent calls."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gta_bench.confine.limits import MIB

# Tools that load models, render or convert: a call can take minutes on a busy machine.
SLOW_TOOLS: Mapping[str, float] = {
    "TextToVideoTool": 900,
    "VideoDescription": 900,
    "VideoObjectDetection": 900,
    "VideoOCR": 900,
    "SpeechToText": 900,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits that apply to every client of a server."""

    body_bytes: int = 8 * MIB
    artefact_bytes: int = 64 * MIB
    artefacts_bytes: int = 4096 * MIB  # stored for a run; the oldest are removed first
    header_seconds: float = 10
    body_seconds: float = 20
    slowest_bytes: int = 256 * 1024  # per second, for bodies that take longer than `body_seconds`
    connections: int = 1000
    uploads: int = 8
    calls: int = 64
    waiting: int = 512
    rate: float = 1000  # requests per second of a run
    burst: float = 2000
    workspaces: int = 2000  # open at the same time, for a run
    idle_seconds: float = 2 * 3600
    tool_seconds: float = 300
    slow_tools: Mapping[str, float] = field(default_factory=lambda: SLOW_TOOLS)

    def seconds(self, tool: str) -> float:
        """Return the time limit of one call of a tool, counted from its start."""
        return self.slow_tools.get(tool, self.tool_seconds)


class Busy(Exception):
    """A limit was reached; `wait` is the delay in seconds before a retry makes sense."""

    def __init__(self, message: str, *, wait: float) -> None:
        self.wait = wait
        super().__init__(message)


class Rate:
    """A token bucket for each run."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, run: str) -> None:
        """Count one request; raises Busy if the run sends too many."""
        now = time.monotonic()
        level, then = self._buckets.get(run, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._per_second)
        if level < 1:
            self._buckets[run] = (level, now)
            raise Busy("Too many requests per second.", wait=(1 - level) / self._per_second)
        self._buckets[run] = (level - 1, now)


class Slots:
    """A limit of concurrent calls; some more may wait, the others are rejected."""

    def __init__(self, slots: int, waiting: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self._most = waiting
        self._waiting = 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Take a slot for the block; raises Busy if too many are waiting."""
        if self._free.locked() and self._waiting >= self._most:
            raise Busy("Too many calls are waiting for the server.", wait=1)
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
