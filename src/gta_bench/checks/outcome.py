"""The outcome of one check: whether it holds, and what was found and wanted."""

import unicodedata
from typing import Final, NamedTuple

from gta_bench.checks.numbers import parse_number
from gta_bench.errors import ConfinedCause, ConfinedError, ToolError, ToolUnavailable

_SHOWN: Final = 160
# What this machine did to a reader, as opposed to what a file did to it.
_OUR_FAULT: Final[frozenset[ConfinedCause]] = frozenset({"timeout", "killed", "cancelled"})


class CheckBroken(ToolError):
    """A check that failed itself, which says nothing about the work."""


def is_at_fault(problem: ToolError | ToolUnavailable) -> bool:
    """Whether a file is the cause of a problem, as opposed to the check or this machine."""
    if isinstance(problem, ConfinedError):
        return problem.busy or problem.cause not in _OUR_FAULT
    return isinstance(problem, ToolError) and not isinstance(problem, CheckBroken)


class Outcome(NamedTuple):
    """`points` is a score from 0 to 10 if the check gives more than yes or no.

    If a check fails without `wanted`, `found` is a problem instead of something to compare.
    """

    holds: bool
    where: str
    found: str
    wanted: str = ""
    points: float | None = None

    def __str__(self) -> str:
        if not self.holds and not self.wanted:
            return f"{self.where}: {self.found}"
        wanted = f", wanted {self.wanted}" if self.wanted else ""
        return f"{self.where}: found {self.found or 'nothing'}{wanted}"


def shorten(text: str) -> str:
    """Return a text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def normalize(text: str, *, case: bool = False) -> str:
    """Return a text in a form in which spaces, Unicode variants and case do not matter."""
    plain = " ".join(unicodedata.normalize("NFKC", text).split())
    return plain if case else plain.casefold()


def compare_number(
    where: str,
    found: str | float,
    wanted: float,
    *,
    within: float | None,
    rel: float | None = None,
    zero_at: float | None = None,
) -> Outcome:
    """Compare a cell or value with a number; `zero_at` is the difference that gives 0 points."""
    margin = max(within or 0.0, (rel or 0.0) * abs(wanted))
    said = f"{wanted:,.10g}" + (f" ± {margin:g}" if margin else "")
    value = parse_number(found) if isinstance(found, str) else found
    if value is None:
        return Outcome(False, where, shorten(str(found)) or "an empty cell", said, 0.0)
    # Sums of decimal fractions differ in the last digits.
    slack = 1e-9 * max(1.0, abs(wanted))
    distance = abs(value - wanted)
    holds = distance <= margin + slack
    points = 10.0 if holds else 0.0
    if not holds and zero_at is not None and zero_at > margin:
        points = max(0.0, 10.0 * (zero_at - distance) / (zero_at - margin))
    return Outcome(holds, where, f"{value:,.10g}", said, points)


def compare_text(where: str, found: str, wanted: str) -> Outcome:
    """Compare two texts without regard to spaces and case."""
    return Outcome(normalize(found) == normalize(wanted), where, repr(shorten(found)), repr(wanted))
