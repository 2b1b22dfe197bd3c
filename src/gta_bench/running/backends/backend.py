"""What a backend does: the same work on many items, somewhere, with nothing lost in silence."""

import errno
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from gta_bench.errors import GtaError, WorkFailed

# Both must be importable where the work is done.
WorkFunction = Callable[[Any], None]
Tick = Callable[[], object]
# Seconds between two looks at what is running.
PAUSE = 0.5
# Times that work is begun again after the process or machine under it was lost.
RETRIES = 5


class Backend(Protocol):
    """Somewhere to work; `places` is how many items it works on at once."""

    name: str
    places: int

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items; the first failure ends the rest and is raised.

        An item whose process was lost is begun again, so work must continue what it finds.
        """

    def close(self) -> None:
        """End everything that was started."""


class ItemFailure(NamedTuple):
    """A failure that is told and not traced, in a form that travels between processes."""

    message: str
    exit_code: int

    def error(self) -> GtaError:
        """The failure to raise here."""
        return WorkFailed(self.message, exit_code=self.exit_code)


def guarded(work: WorkFunction, item: Any) -> ItemFailure | None:
    """The work on one item; what a user is told comes back, anything else is a bug and raised."""
    try:
        work(item)
    except GtaError as exc:
        return ItemFailure(str(exc), exc.exit_code)
    except OSError as exc:
        return ItemFailure(told_of_system(exc), 3)
    return None


def told_of_system(exc: OSError) -> str:
    """What the operating system refused, in one line."""
    where = f"{exc.filename}: " if exc.filename else ""
    full = " Make room on the disk." if exc.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return f"{where}{exc.strerror or exc}.{full}"


class Inline:
    """This process, one item after the other."""

    name = "inline"
    places = 1

    def run(self, work: WorkFunction, items: Sequence[Any], *, at_once: int, tick: Tick) -> None:
        """Work on all items in turn; failures are raised as they are."""
        for item in items:
            work(item)
            tick()

    def close(self) -> None:
        """Nothing was started."""


INLINE = Inline()
