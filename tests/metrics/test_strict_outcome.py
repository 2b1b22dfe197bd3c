"""What a predicted step amounts to, and what an answer is worth."""

import pytest

from gta_bench.metrics.similarity import exact_or_half
from gta_bench.metrics.strict.outcome import StepOutcome, classify_step, score_answer
from gta_bench.records.atomic import FreeTextAnswer, WhitelistAnswer
from gta_bench.records.steps import (
    AnswerStep,
    MalformedStep,
    PredictedStep,
    ReplyStep,
    ThoughtStep,
)
from tests.metrics.atomic_variants import FAILURE, call

STEPS: list[tuple[PredictedStep, StepOutcome]] = [
    (call("OCR"), "call"),
    (call("OCR", FAILURE), "failed_call"),
    (call("InvalidAction", FAILURE, text="x"), "failed_call"),
    (call("NoAction", FAILURE, text=""), "malformed"),
    (AnswerStep(content="58"), "answer"),
    (AnswerStep(content=""), "malformed"),
    (AnswerStep(content=" \n\t"), "malformed"),
    (AnswerStep(content="58", error=FAILURE), "crash"),
    (AnswerStep(content="", error=FAILURE), "crash"),
    (AnswerStep(content="[LagentAgentError] 58"), "crash"),
    (AnswerStep(content="[AgentInferencerError] 58"), "crash"),
    (MalformedStep(content="58", reason="no marker"), "malformed"),
    (ThoughtStep(content="58"), "other"),
    (ReplyStep(), "other"),
]


@pytest.mark.parametrize(("step", "kind"), STEPS)
def test_every_step_has_one_outcome(step: PredictedStep, kind: StepOutcome) -> None:
    assert classify_step(step) == kind


@pytest.mark.parametrize(("step", "kind"), STEPS)
def test_only_an_answer_can_score(step: PredictedStep, kind: StepOutcome) -> None:
    whitelist = WhitelistAnswer(whitelist=(("58",),))
    free_text = FreeTextAnswer(references=("58",))
    for answer in (whitelist, free_text):
        assert score_answer(step, answer, similarity=exact_or_half) == float(kind == "answer")


def test_free_text_gets_the_best_similarity() -> None:
    step = AnswerStep(content="b")
    near = FreeTextAnswer(references=("a", "c"))
    assert score_answer(step, near, similarity=exact_or_half) == 0.5
    equal = FreeTextAnswer(references=("a", "b"))
    assert score_answer(step, equal, similarity=exact_or_half) == 1.0
    nothing = FreeTextAnswer(references=())
    assert score_answer(step, nothing, similarity=exact_or_half) == 0.0
