"""What all workers of a command may use together: connections, requests a minute, dollars, time.

`SharedBudget` is in one place, and each worker has a `BudgetShare` for its lease. Inspect enforces
it by its own limiters, which can be changed while it evaluates.
"""

import asyncio
import time
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread

from gta_bench.records.progress import RunProgress
from gta_bench.running.backends.backend import Call
from gta_bench.running.stopping import check_stop
from gta_bench.settings import BudgetSettings

# Ray starts a process for the shared budget, in which loading the engine would take seconds.
if TYPE_CHECKING:
    from inspect_ai.model import Model
    from inspect_ai.util import _concurrency as inspect_limits

# Seconds in which at most `rpm` requests start; the rest of a second is the way to the server.
MINUTE = 60.5
# Seconds between two times that a worker asks for its share.
PAUSE = 0.25
# Seconds for which an even share is kept for a worker that is starting, or between two leases.
STARTING, BETWEEN = 60.0, 5.0
# Seconds of silence after which the connections of a worker go to others.
SILENCE = 30.0


class RunLimits(NamedTuple):
    """When no more units start: at a time, or once so much was spent."""

    deadline: datetime | None = None
    cost_usd: float | None = None

    def find_reached(self, spent_usd: float | None) -> str | None:
        """Describe the limit that is reached, if any; `spent_usd` is the known part."""
        if self.deadline is not None and datetime.now(UTC) >= self.deadline:
            return "The command has used up its time (budget.hours)"
        if self.cost_usd is not None and (spent_usd or 0.0) >= self.cost_usd:
            return f"The run has spent its budget of ${self.cost_usd:g} (budget.cost_usd)"
        return None

    def explain(self, progress: RunProgress) -> RunProgress:
        """Add the limit that stopped the run, if one did, and what the rest would cost."""
        stopped = self.find_reached(progress.known_usd)
        needed = None
        spent, most = progress.known_usd or 0.0, self.cost_usd
        if most is not None and spent >= most:
            needed = spent * progress.units / progress.done if progress.done else 2 * most
        return progress.model_copy(update={"stopped": stopped, "needed_usd": needed})


NO_LIMITS = RunLimits()


class _Turn(NamedTuple):
    """A request that may start after so many seconds; `at` identifies it."""

    at: float
    seconds: float


@dataclass
class _Hold:
    need: int
    used: int
    allowed: int
    seen: float

    @property
    def charged(self) -> int:
        """What others cannot have: what is allowed, or still used after that was lowered."""
        return max(self.allowed, self.used)


class SharedBudget:
    """The budget of a command; its methods answer at once.

    >>> budget = SharedBudget(connections=8)
    >>> budget.hold("a", need=10, used=0), budget.hold("b", need=3, used=0)
    (8, 0)
    >>> budget.hold("a", need=10, used=4), budget.hold("b", need=3, used=0)
    (5, 3)
    """

    def __init__(
        self,
        *,
        connections: int,
        places: int = 1,
        rpm: int | None = None,
        limits: RunLimits = NO_LIMITS,
        spent_usd: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._rpm = rpm
        self._limits = limits
        self._spent = spent_usd or 0.0
        self._clock = clock
        self._holds: dict[str, _Hold] = {}
        self._even = max(1, connections // places)
        # Until when shares are kept for workers that hold nothing now.
        self._kept = [clock() + STARTING] * places
        self._starts: list[float] = []

    def hold(self, holder: str, need: int, used: int) -> int:
        """Return how many connections a holder may use, of which it needs and uses so many."""
        now = self._clock()
        if self._holds.pop(holder, None) is None and self._kept:
            self._kept.pop()
        self._kept = [end for end in self._kept if end > now]
        self._holds = {name: one for name, one in self._holds.items() if one.seen > now - SILENCE}
        free = self._connections - sum(one.charged for one in self._holds.values())
        mine = _Hold(need, used, 0, now)
        self._holds[holder] = mine
        mine.allowed = max(0, min(need, free, self._fair(holder)))
        return mine.allowed

    def _fair(self, holder: str) -> int:
        """Divide the connections evenly, but give nobody more than it needs."""
        left = self._connections
        needs = [(one.need, name) for name, one in self._holds.items()]
        ranked = sorted(needs + [(self._even, "")] * len(self._kept))
        for place, (need, name) in enumerate(ranked):
            share = min(need, left // (len(ranked) - place))
            if name == holder:
                break
            left -= share
        return share

    def release(self, holder: str) -> None:
        """Take back all connections of a holder, whose worker will take another lease soon."""
        if self._holds.pop(holder, None) is not None:
            self._kept.append(self._clock() + BETWEEN)

    def reserve(self) -> _Turn:
        """Reserve the start of a request; requests start in the order of their reservations."""
        now = self._clock()
        del self._starts[: bisect_right(self._starts, now - MINUTE)]
        at = now
        if self._rpm is not None and len(self._starts) >= self._rpm:
            at = max(now, self._starts[-self._rpm] + MINUTE)
        insort(self._starts, at)
        return _Turn(at, at - now)

    def give_back(self, turn: _Turn) -> None:
        """Return the turn of a request that was canceled before it started."""
        if turn.at in self._starts:
            self._starts.remove(turn.at)

    def find_reached(self) -> str | None:
        """Describe the limit because of which no unit may start; None before one is reached."""
        return self._limits.find_reached(self._spent)

    def spend(self, usd: float) -> None:
        """Add the known cost of a unit that ended."""
        self._spent += usd

    def note_spent(self, usd: float | None) -> None:
        """Note what was spent at least, as the files of the run show it."""
        self._spent = max(self._spent, usd or 0.0)


class BudgetShare:
    """A worker's side of the budget, while it evaluates the units of one lease."""

    def __init__(self, call: Call, holder: str, budget: BudgetSettings) -> None:
        self._call = call
        self._holder = holder
        self._paced = budget.rpm is not None
        self._limited = budget.hours is not None or budget.cost_usd is not None
        self._following: asyncio.Task[None] | None = None
        self.connections = 0
        self._turns = anyio.CapacityLimiter(1)

    def begin(self, units: int) -> None:
        """Wait for the first connections, of which these units need one each."""
        while not self.connections:
            check_stop()
            self.connections = self._call("hold", self._holder, units, 0)
            if not self.connections:
                time.sleep(PAUSE)
        self._turns.total_tokens = self.connections

    def end(self) -> None:
        """Give back all connections."""
        self._call("release", self._holder)

    def follow(self, models: "Iterable[Model]") -> None:
        """Apply changes of the share to Inspect's limiters, until `unfollow` is called."""
        from inspect_ai.model import ModelName

        self._following = asyncio.create_task(self._follow({str(ModelName(m)) for m in models}))

    def unfollow(self) -> None:
        """Apply no more changes."""
        if self._following is not None:
            self._following.cancel()

    async def _follow(self, models: set[str]) -> None:
        while True:
            await anyio.sleep(PAUSE)
            limiters = find_limiters(models)
            used = max((one.in_use for one in limiters), default=0)
            need = max((one.in_use + count_waiting(one) for one in limiters), default=1)
            need += self._turns.statistics().tasks_waiting
            found = await self._ask("hold", self._holder, max(1, need), used)
            self.connections = max(1, found)
            self._turns.total_tokens = self.connections
            for one in limiters:
                one.limit = self.connections

    def take_turn(self) -> AbstractAsyncContextManager[object]:
        """Wait until fewer calls are in flight than there are connections, and be one of them."""
        return self._turns

    async def start_unit(self) -> str | None:
        """Describe the limit because of which the unit must not start; None if it may."""
        if not self._limited:
            return None
        found: str | None = await self._ask("find_reached")
        return found

    async def end_unit(self, usd: float | None) -> None:
        """Report the known cost of a unit that ended."""
        if usd:
            await self._ask("spend", usd)

    async def start_request(self) -> None:
        """Wait until a request may start."""
        if not self._paced:
            return
        turn: _Turn = await self._ask("reserve")
        started = False
        try:
            await anyio.sleep(turn.seconds)
            started = True
        finally:
            if not started:
                self._call("give_back", turn)

    async def _ask(self, method: str, *args: Any) -> Any:
        # Not abandoned when it is canceled, so that what it returns can be given back.
        return await anyio.to_thread.run_sync(self._call, method, *args)


def find_limiters(models: set[str]) -> "list[inspect_limits.ResizableLimiter]":
    """Return Inspect's limiters of units, and of calls to these models.

    It has no public names for them; tests/running/test_budget.py checks these.
    """
    from inspect_ai.util import _concurrency as inspect_limits

    calls = (one.semaphore for one in inspect_limits.concurrency_semaphores() if one.name in models)
    found = (*inspect_limits._task_sample_semaphores.values(), *calls)
    return [one for one in found if isinstance(one, inspect_limits.ResizableLimiter)]


def count_waiting(limiter: "inspect_limits.ResizableLimiter") -> int:
    """Count what waits for a limiter."""
    return limiter._limiter.statistics().tasks_waiting


current_share: ContextVar[BudgetShare | None] = ContextVar("share", default=None)


@contextmanager
def open_share(
    call: Call, holder: str, budget: BudgetSettings, *, units: int
) -> Iterator[BudgetShare]:
    """Take part in the budget in the block, with at least one connection."""
    share = BudgetShare(call, holder, budget)
    share.begin(units)
    token = current_share.set(share)
    try:
        yield share
    finally:
        current_share.reset(token)
        share.end()
