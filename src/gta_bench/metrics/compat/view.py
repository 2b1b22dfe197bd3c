"""Steps and answers as upstream's evaluator reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.records.atomic import Answer, WhitelistAnswer
from gta_bench.records.steps import (
    NO_ACTION,
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    ThoughtStep,
)


@dataclass(frozen=True)
class StepView:
    """The parts of a step that upstream's metrics use."""

    type: Literal["tool", "answer", "tool_return"]
    name: str = ""
    arguments: JsonValue = None
    content: str = ""
    failed: bool = False


def view_step(step: PredictedStep) -> StepView:
    """Read a step: a thought is an answer, a malformed reply is a failed call of NoAction."""
    match step:
        case CallStep():
            failed = step.error is not None
            return StepView("tool", name=step.name, arguments=step.arguments, failed=failed)
        case MalformedStep():
            return StepView("tool", name=NO_ACTION, arguments={"text": ""}, failed=True)
        case AnswerStep():
            return StepView("answer", content=step.content, failed=step.error is not None)
        case ThoughtStep():
            return StepView("answer", content=step.content)
        case _:
            return StepView("tool_return")


def is_scored(answer: Answer | None) -> bool:
    """Return whether upstream counts the answer: it is neither null nor an empty list."""
    return isinstance(answer, WhitelistAnswer) or (answer is not None and bool(answer.references))


def score_content(text: str, answer: Answer | None, *, similarity: SimilarityFunction) -> float:
    """Score a text: 1 or 0 by whitelist, the best similarity for free text, 0 without an answer."""
    if answer is None:
        return 0.0
    if isinstance(answer, WhitelistAnswer):
        return float(matches(text, answer))
    # Upstream's maximum starts at 0, so a negative similarity counts as 0.
    return max(0.0, *(similarity(text, reference) for reference in answer.references), 0.0)


def matches(text: str, answer: WhitelistAnswer) -> bool:
    """Return whether every whitelist group is found in the text and no blacklisted alias is."""
    if not all(_finds(group, text) for group in answer.whitelist):
        return False
    # Kept for parity: all groups of the blacklist are one search, and an empty one is ignored.
    if not answer.blacklist:
        return True
    return not _finds((alias for group in answer.blacklist for alias in group), text)


def self_rejecting_groups(answer: WhitelistAnswer) -> tuple[tuple[str, ...], ...]:
    """Return the groups in which no alias matches itself; such a task cannot be solved.

    Upstream searches each alias between two `\\b`. An alias that begins or ends with a sign ("-3",
    "$12", "50%", "C++") then needs a word character outside of that edge, so it never matches the
    same text.
    """
    return tuple(
        group for group in answer.whitelist if not any(_finds(group, alias) for alias in group)
    )


def _finds(aliases: Iterable[str], text: str) -> bool:
    pattern = "|".join(re.escape(alias) for alias in aliases)
    return re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE) is not None
