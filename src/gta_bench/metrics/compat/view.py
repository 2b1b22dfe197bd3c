"""A step as upstream's evaluator sees it: tool, answer or tool_return, failed or not."""

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from gta_bench.metrics.compat.whitelist import matches
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
    """What upstream's metrics read of a step."""

    type: Literal["tool", "answer", "tool_return"]
    name: str = ""
    arguments: JsonValue = None
    content: str = ""
    failed: bool = False


def view(step: PredictedStep) -> StepView:
    """Upstream's reading: a thought is an answer, a malformed reply a failed call of NoAction."""
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
    """Whether upstream counts the answer: not null, and no empty list."""
    return isinstance(answer, WhitelistAnswer) or (answer is not None and bool(answer.references))


def score_text(text: str, answer: Answer | None, *, similarity: SimilarityFunction) -> float:
    """1 or 0 by the whitelist, the best similarity for free text, 0 where there is no answer."""
    if answer is None:
        return 0.0
    if isinstance(answer, WhitelistAnswer):
        return float(matches(text, answer))
    # Upstream's maximum starts at 0, so a negative similarity counts as none.
    return max(0.0, *(similarity(text, reference) for reference in answer.references), 0.0)
