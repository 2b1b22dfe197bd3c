"""Whether an answer names what the reference asks for, by upstream's word-boundary rule.

Upstream searches each alias between two `\\b`. An alias that begins or ends with a sign ("-3",
"$12", "50%", "C++") then needs a word character outside that edge, so it cannot match itself.
"""

import re
from collections.abc import Iterable

from gta_bench.records.atomic import WhitelistAnswer
from gta_bench.records.scores import CategoryCounts

# Upstream adds this to two denominators of F1, so that its best value is 99.9995.
EPSILON = 1e-5


def f1_percent(counts: CategoryCounts) -> float:
    """F1 of a category of tools; 0 without calls in the reference."""
    if not counts.gold:
        return 0.0
    precision = counts.hits / (counts.predicted + EPSILON)
    recall = counts.hits / counts.gold
    return 2 * precision * recall / (precision + recall + EPSILON) * 100


def matches(text: str, answer: WhitelistAnswer) -> bool:
    """Every group is found, and nothing of the blacklist."""
    if not all(_finds(group, text) for group in answer.whitelist):
        return False
    # Kept for parity: all groups of the blacklist are one search, and an empty one is none.
    if not answer.blacklist:
        return True
    return not _finds((alias for group in answer.blacklist for alias in group), text)


def self_rejecting_groups(answer: WhitelistAnswer) -> tuple[tuple[str, ...], ...]:
    """Groups of which no alias, given as the whole answer, is found: a task nobody can solve."""
    return tuple(
        group for group in answer.whitelist if not any(_finds(group, alias) for alias in group)
    )


def _finds(aliases: Iterable[str], text: str) -> bool:
    pattern = "|".join(re.escape(alias) for alias in aliases)
    return re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE) is not None
