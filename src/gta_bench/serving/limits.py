"""How much a client may ask of the server: sizes, times, rate, calls at once."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

MIB = 1 << 20

# Tools that load models, render or convert: an honest call can take minutes on a busy machine.
SLOW_TOOLS: Mapping[str, float] = {
    "TextToVideoTool": 900,
    "VideoDescription": 900,
    "VideoObjectDetection": 900,
    "VideoOCR": 900,
    "SpeechToText": 900,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What holds for every client of a server."""

    body_bytes: int = 8 * MIB
    artefact_bytes: int = 64 * MIB
    artefacts_bytes: int = 4096 * MIB  # kept for a run; the oldest go first
    header_seconds: float = 10
    body_seconds: float = 20
    slowest_bytes: int = 256 * 1024  # a second, for bodies that take longer than `body_seconds`
    connections: int = 1000
    uploads: int = 8
    calls: int = 64
    waiting: int = 512
    rate: float = 1000  # requests a second and run
    burst: float = 2000
    workspaces: int = 2000  # open at once, for a run
    idle_seconds: float = 2 * 3600
    tool_seconds: float = 300
    slow_tools: Mapping[str, float] = field(default_factory=lambda: SLOW_TOOLS)

    def seconds(self, tool: str) -> float:
        """How long one call of a tool may take, from when it begins."""
        return self.slow_tools.get(tool, self.tool_seconds)


class Busy(Exception):
    """More was asked for than the server takes; `wait` is in seconds."""

    def __init__(self, message: str, *, wait: float) -> None:
        self.wait = wait
        super().__init__(message)


class Rate:
    """A bucket for each run that fills steadily and is emptied by requests."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, run: str) -> None:
        """Take one, or raise Busy."""
        now = time.monotonic()
        level, then = self._buckets.get(run, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._per_second)
        if level < 1:
            self._buckets[run] = (level, now)
            raise Busy(
                "More requests a second than are taken.", wait=(1 - level) / self._per_second
            )
        self._buckets[run] = (level - 1, now)


class Slots:
    """So many at once; some wait, and those beyond are refused."""

    def __init__(self, slots: int, waiting: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self._most = waiting
        self._waiting = 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """A slot for the block, or Busy."""
        if self._free.locked() and self._waiting >= self._most:
            raise Busy("The server has as many calls waiting as it takes.", wait=1)
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
