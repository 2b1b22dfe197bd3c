"""Python expressions of foreign origin, evaluated by pydantic-monty in worker processes.

Monty is an interpreter of its own without files, network, imports or the host's objects. A session
lives in a worker process with limits on time, memory and depth; a new one is taken for every call.
"""

import math
import threading
import weakref

from pydantic_monty import (
    Monty,
    MontyCrashedError,
    MontyError,
    MontySession,
    MontySyntaxError,
    ResourceLimits,
)

from gta_bench.confine.names import shown
from gta_bench.errors import ToolError
from gta_bench.tools.contract import MOST_CHARACTERS, bounded

SECONDS = 1.5
SECONDS_TO_KILL = 2.5  # for what does not look at its own clock
MEBIBYTES = 64
LONGEST = 20_000
LIMITS: ResourceLimits = {
    "max_feed_duration_secs": SECONDS,
    "max_memory": MEBIBYTES << 20,
    "max_recursion_depth": 100,
}

# `pow` stays Python's own, so that pow(2, 10) is 1024 and not 1024.0. Monty 1.4.0 rounds 2.675 to
# 2.68 because it scales before it rounds; its formatting is exact, as CPython's rounding is.
NAMES = ", ".join(name for name in dir(math) if not name.startswith("_") and name != "pow")
PRELUDE = f"""
import math
from math import {NAMES}
_round = round
def round(number, ndigits=None):
    if isinstance(number, float) and ndigits is not None and ndigits >= 0 and isfinite(number):
        return float(format(number, f".{{min(ndigits, 400)}}f"))
    return _round(number, ndigits)
"""
# The text is made over there to know its length, and once more here, where it is CPython's.
FETCH = f"(len(_text), _value if len(_text) <= {MOST_CHARACTERS} else _text[:{MOST_CHARACTERS}])"


class Evaluator:
    """Worker processes for expressions, started when first needed; many threads may share it."""

    def __init__(self, *, processes: int) -> None:
        self._processes = processes
        self._lock = threading.Lock()
        self._pool: Monty | None = None

    def evaluate(self, expression: str) -> str:
        """`str` of the expression's value; blocks for at most a few seconds."""
        source = expression.strip()
        if not source:
            raise ToolError("The expression is empty.")
        if len(source) > LONGEST:
            raise ToolError(f"The expression has {len(source)} characters; at most {LONGEST}.")
        try:
            with self._workers().checkout(limits=LIMITS) as session:
                return _value(session, source)
        except MontyError as exc:
            raise ToolError(_words(exc, source)) from exc
        except (TimeoutError, ValueError) as exc:
            raise ToolError(f"{shown(source)} cannot be evaluated: {exc}.") from exc

    def _workers(self) -> Monty:
        with self._lock:
            if self._pool is None:
                pool = Monty(
                    min_processes=1,
                    max_processes=self._processes,
                    request_timeout=SECONDS_TO_KILL,
                )
                self._pool = pool.__enter__()
                # They end with the last user of this object, or with this process.
                weakref.finalize(self, pool.__exit__, None, None, None)
            return self._pool


def _value(session: MontySession, source: str) -> str:
    session.feed_run(PRELUDE)
    # In parentheses, so that it is one expression whatever its line breaks are.
    code = f"_value = (\n{source}\n)\n_text = str(_value)"
    session.feed_run(code, print_callback=_ignore)
    length, value = session.feed_run(FETCH)
    return bounded(str(value), length=length)


def _ignore(stream: str, text: str) -> None:
    """What an expression prints is not its value."""


def _words(error: MontyError, source: str) -> str:
    expression = shown(source)
    if isinstance(error, MontySyntaxError):
        return f"{expression} is not a Python expression: {error}."
    if isinstance(error, MontyCrashedError):
        return f"{expression} was stopped after {SECONDS_TO_KILL:g} seconds or crashed."
    cause = error.exception()
    if isinstance(cause, TimeoutError):
        return f"{expression} was stopped after {SECONDS:g} seconds."
    if isinstance(cause, MemoryError):
        return f"{expression} needs more than {MEBIBYTES} MiB of memory."
    return f"{expression} failed: {error}."
