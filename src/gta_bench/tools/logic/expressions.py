"""Untrusted Python expressions, evaluated by pydantic-monty in worker processes.

Monty is an interpreter without files, network, imports or the host's objects. A session runs in a
worker process with limits on time, memory and depth; every call gets a new one.
"""

import math
import threading
import weakref
from collections.abc import Iterator

from pydantic_monty import (
    Monty,
    MontyCrashedError,
    MontyError,
    MontySession,
    MontySyntaxError,
    ResourceLimits,
)

from gta_bench.confine.names import quote_foreign
from gta_bench.datasets.checks import Spot
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import ToolError
from gta_bench.records.dialogue import CallTurn, ReplyTurn
from gta_bench.tools.contract import MOST_CHARACTERS, truncate_text

SECONDS = 1.5
SECONDS_TO_KILL = 2.5  # for code that does not check its own clock
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
# Monty makes the text to know its length, and CPython makes it again here.
FETCH = f"(len(_text), _value if len(_text) <= {MOST_CHARACTERS} else _text[:{MOST_CHARACTERS}])"


class Evaluator:
    """Worker processes for expressions, started when first needed; threads may share it."""

    def __init__(self, *, processes: int) -> None:
        self._processes = processes
        self._lock = threading.Lock()
        self._pool: Monty | None = None

    def evaluate(self, expression: str) -> str:
        """Return `str` of the expression's value; blocks for a few seconds at most."""
        source = expression.strip()
        if not source:
            raise ToolError("The expression is empty.")
        if len(source) > LONGEST:
            raise ToolError(f"The expression has {len(source)} characters; the limit is {LONGEST}.")
        try:
            with self._workers().checkout(limits=LIMITS) as session:
                return _value(session, source)
        except MontyError as exc:
            raise ToolError(_explain(exc, source)) from exc
        except (TimeoutError, ValueError) as exc:
            raise ToolError(f"{quote_foreign(source)} cannot be evaluated: {exc}.") from exc

    def _workers(self) -> Monty:
        with self._lock:
            if self._pool is None:
                pool = Monty(
                    min_processes=1,
                    max_processes=self._processes,
                    request_timeout=SECONDS_TO_KILL,
                )
                self._pool = pool.__enter__()
                # They end with this object, or with this process.
                weakref.finalize(self, pool.__exit__, None, None, None)
            return self._pool


def _value(session: MontySession, source: str) -> str:
    session.feed_run(PRELUDE)
    # In parentheses, so that it is one expression whatever its line breaks are.
    code = f"_value = (\n{source}\n)\n_text = str(_value)"
    session.feed_run(code, print_callback=_ignore)
    length, value = session.feed_run(FETCH)
    return truncate_text(str(value), length=length)


def _ignore(stream: str, text: str) -> None:
    """Ignore what an expression prints: it is not its value."""


def _explain(error: MontyError, source: str) -> str:
    expression = quote_foreign(source)
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


def check_calculator_replies(dataset: AtomicDataset) -> Iterator[Spot]:
    """Find recorded Calculator replies that differ from what the tool computes.

    Used by `gta data verify` if pydantic-monty is installed; these are notes, not errors.
    """
    evaluator = Evaluator(processes=1)
    for task in dataset.tasks.values():
        for index, (turn, reply) in enumerate(zip(task.dialogue, task.dialogue[1:], strict=False)):
            if not (isinstance(turn, CallTurn) and turn.call.name == "Calculator"):
                continue
            try:
                computed = evaluator.evaluate(str(turn.call.arguments.get("expression", "")))
            except ToolError as exc:
                computed = f"error: {exc}"
            if isinstance(reply, ReplyTurn) and computed != reply.content:
                message = f"Calculator gives {computed!r}, the recorded reply is {reply.content!r}."
                yield Spot(message, task.id, f"dialogs.{index + 1}")
