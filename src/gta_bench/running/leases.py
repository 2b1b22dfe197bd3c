"""Work that is pulled: a free worker takes a lease, which is a list of tasks, longest first.

The table is in one place, the process that started the command. No worker waits for another: large
leases come first, and the last ones are as small as the start of an evaluation allows.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import Generic, NamedTuple, Protocol, TypeVar

from gta_bench.errors import EnvironmentProblem

# A lease's log is rewritten as its units finish, so it must not become too long.
UNITS_PER_LEASE = 256
# A lease has at most this part of the time that is left if all workers end together.
PART = 1 / 3
# Seconds that a lease costs a warm worker beside its units, as assumed on every machine: the start
# and the end of an evaluation, and cores that rest while the last units wait for a model.
START = 0.5
# At most this part of a worker's time is spent on starting evaluations.
MOST_STARTING = 0.05
# The least tasks of a lease while no lease is done, as if a task took a second.
TASKS_AT_FIRST = START / MOST_STARTING
# With fewer units per worker, starting a process costs more than it saves.
UNITS_PER_WORKER = 20
# How often work is started again after its process was lost.
RETRIES = 5

ItemT = TypeVar("ItemT")


class _NamedLease(Protocol):
    """A lease; its name is different from that of any other lease of the same command."""

    @property
    def name(self) -> str:
        """The name, which a lease keeps when it is taken again."""


LeaseType = TypeVar("LeaseType", bound=_NamedLease)


class LeaseSource(Protocol[ItemT]):
    """Where a backend takes its items from."""

    def take(self) -> ItemT | None:
        """Return an item to work on; None if there is none now."""

    def finish(self, item: ItemT) -> bool:
        """Note that an item is done; False if it was done before."""

    def give_back(self, item: ItemT) -> None:
        """Return an item whose worker was lost, for another worker to take.

        Raises if that happened too often.
        """


class Items(Generic[ItemT]):
    """Items that are known before the work starts; `finish` may be called once for each."""

    def __init__(self, items: Iterable[ItemT]) -> None:
        self._waiting = deque((item, 0) for item in items)
        self._taken: list[tuple[ItemT, int]] = []

    def take(self) -> ItemT | None:
        """Return the next item."""
        if not self._waiting:
            return None
        self._taken.append(self._waiting.popleft())
        return self._taken[-1][0]

    def finish(self, item: ItemT) -> bool:
        """Forget the item."""
        return self._remove(item) is not None

    def give_back(self, item: ItemT) -> None:
        """Let the item be taken again, before all others."""
        lost = self._remove(item)
        if lost is not None:
            self._waiting.appendleft((item, count_loss(lost)))

    def _remove(self, item: ItemT) -> int | None:
        for place, (one, lost) in enumerate(self._taken):
            if one == item:
                del self._taken[place]
                return lost
        return None


class _Taken(NamedTuple, Generic[LeaseType]):
    lease: LeaseType
    seconds: float
    since: float
    lost: int = 0


class LeaseTable(Generic[LeaseType]):
    """The tasks that no worker has taken yet, and the leases that are not done.

    `expected` has the expected time of each task in any unit, `make` creates a lease from its name
    and tasks. All epochs of a task are in one lease, since Inspect evaluates them together.

    >>> from typing import NamedTuple
    >>> class Lease(NamedTuple):
    ...     name: str
    ...     tasks: tuple[str, ...]
    >>> LeaseTable({"a": 1, "b": 9, "c": 2}, make=Lease).take()
    Lease(name='0', tasks=('b',))
    """

    def __init__(
        self,
        expected: Mapping[str, float],
        *,
        make: Callable[[str, tuple[str, ...]], LeaseType],
        places: int = 2,
        epochs: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expected = expected
        # Equally long tasks stay in the order of the dataset.
        self._left = deque(sorted(expected, key=lambda task: -expected[task]))
        self._rest = sum(expected.values())
        self._make = make
        self._places = places
        self._most = max(1, UNITS_PER_LEASE // epochs)
        self._clock = clock
        self._taken: dict[str, _Taken[LeaseType]] = {}
        self._lost: deque[_Taken[LeaseType]] = deque()
        self._made = 0
        # Seconds per expected time, of the newest leases.
        self._pace: deque[float] = deque(maxlen=places)

    def take(self) -> LeaseType | None:
        """Return a lost lease, or a new one with the longest tasks that are left."""
        if self._lost:
            taken = self._lost.popleft()._replace(since=self._clock())
        elif self._left:
            tasks = self._choose()
            lease = self._make(str(self._made), tasks)
            self._made += 1
            taken = _Taken(lease, sum(self._expected[task] for task in tasks), self._clock())
        else:
            return None
        self._taken[taken.lease.name] = taken
        return taken.lease

    def finish(self, lease: LeaseType) -> bool:
        """Accept the first answer for a lease, whichever worker gave it."""
        taken = self._taken.pop(lease.name, None)
        if taken is None:
            waiting = [one for one in self._lost if one.lease.name == lease.name]
            for one in waiting:
                self._lost.remove(one)
            return bool(waiting)
        if taken.seconds > 0:
            self._pace.append((self._clock() - taken.since) / taken.seconds)
        return True

    def give_back(self, lease: LeaseType) -> None:
        """Let a lost lease be taken again, before all others."""
        taken = self._taken.pop(lease.name, None)
        if taken is not None:
            self._lost.append(taken._replace(lost=count_loss(taken.lost)))

    def _choose(self) -> tuple[str, ...]:
        """Remove the tasks of the next lease from those that are left."""
        pace = fmean(self._pace) if any(self._pace) else None
        even = (self._rest + self._count_running(pace)) / self._places
        share = even if self._places == 1 else PART * even
        if pace is not None:
            least = START / MOST_STARTING / pace
        else:
            least = TASKS_AT_FIRST * self._rest / len(self._left)
        # Crumbs would cost more to start than they even out.
        most = even if even < 1.5 * least else max(share, least)
        chosen: list[str] = []
        taken = 0.0
        while self._left and len(chosen) < self._most:
            if chosen and taken + self._expected[self._left[0]] > most:
                break
            task = self._left.popleft()
            chosen.append(task)
            taken += self._expected[task]
        self._rest -= taken
        return tuple(chosen)

    def _count_running(self, pace: float | None) -> float:
        """Return the expected time of what workers have not done yet of their leases."""
        # Of an unknown pace, nothing is done.
        now, each = self._clock(), 0.0 if pace is None else 1 / pace
        return sum(max(0.0, one.seconds - each * (now - one.since)) for one in self._taken.values())


def count_loss(before: int) -> int:
    """Count another loss of the same work; raises if that is too often."""
    if before == RETRIES:
        raise EnvironmentProblem(
            f"Worker processes were killed {RETRIES + 1} times, most likely because memory ran "
            "out: use fewer --workers."
        )
    return before + 1


def expect_seconds(sizes: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Return the expected time of every task: as `known`, otherwise proportional to its size.

    >>> expect_seconds({"a": 2, "b": 4, "c": 6}, {"a": 10.0})
    {'a': 10.0, 'b': 20.0, 'c': 30.0}
    """
    measured = {task: seconds for task, seconds in known.items() if task in sizes}
    scale = 1.0
    if any(measured.values()):
        scale = sum(measured.values()) / sum(sizes[task] for task in measured)
    return {task: measured.get(task, size * scale) for task, size in sizes.items()}


def count_useful_workers(units: int, places: int) -> int:
    """Return how many workers are worth starting for that many units."""
    return max(1, min(places, units // UNITS_PER_WORKER))
