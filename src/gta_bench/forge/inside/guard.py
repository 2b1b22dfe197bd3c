"""The end of every check of a family: it decides any work instead of breaking on it."""

import signal
from collections.abc import Callable
from typing import Any

# Of processor time. Right work needs less than one.
SECONDS = 20
# What the caller of the check handles: a missing file, and what this machine cannot read.
PASSED_ON = ("NotDelivered", "NotReadable")
FUNCTIONS: list[str] = []


def _guard(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a check that a work cannot make fail: what it cannot read does not hold."""

    def decide(work: Any) -> Any:
        signal.signal(signal.SIGVTALRM, _stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            return check(work)
        except Exception as problem:
            if type(problem).__name__ in PASSED_ON:
                raise
            return {"score": 0, "found": f"cannot be read: {type(problem).__name__}: {problem}"}
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    return decide


def _stop(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s of processor time")
