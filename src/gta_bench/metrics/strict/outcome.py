"""What a predicted step amounts to: a call, an answer, a failure, or nothing usable."""

from typing import Final, Literal

from gta_bench.metrics.similarity import SimilarityFunction
from gta_bench.metrics.strict.whitelist import matches
from gta_bench.records.atomic import Answer, WhitelistAnswer
from gta_bench.records.steps import NO_ACTION, AnswerStep, CallStep, MalformedStep, PredictedStep

StepOutcome = Literal["call", "answer", "failed_call", "crash", "malformed", "other"]

# Upstream writes its own crashes as answers that begin with one of these.
CRASH_TEXTS: Final = ("[LagentAgentError]", "[AgentInferencerError]")


def outcome(step: PredictedStep) -> StepOutcome:
    """Thoughts and tools' replies are `other`; upstream's NoAction is a malformed reply."""
    match step:
        case CallStep(name=name) if name == NO_ACTION:
            return "malformed"
        case CallStep(error=error):
            return "call" if error is None else "failed_call"
        case AnswerStep(error=error, content=content):
            if error is not None or content.startswith(CRASH_TEXTS):
                return "crash"
            return "answer" if content.strip() else "malformed"
        case MalformedStep():
            return "malformed"
        case _:
            return "other"


def score_answer(step: PredictedStep, answer: Answer, *, similarity: SimilarityFunction) -> float:
    """0 to 1: the whitelist, or the best similarity for free text; only an answer can score."""
    if not isinstance(step, AnswerStep) or outcome(step) != "answer":
        return 0.0
    if isinstance(answer, WhitelistAnswer):
        return float(matches(step.content, answer))
    return max((similarity(step.content, text) for text in answer.references), default=0.0)
