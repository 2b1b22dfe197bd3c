import pytest

from gta_bench.records.atomic import WhitelistAnswer
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    PredictedStep,
    StepError,
    ThoughtStep,
)
from gta_bench.tasks.show import explanation, step_text, verdict
from tests.metrics.atomic_variants import make_task

CALL = CallStep(name="OCR", arguments={"image": "inputs/a.jpg", "k": 3})
ANSWER = AnswerStep(content="It is 7.")
FAILED = CALL.model_copy(update={"error": StepError(type="ARGS_ERROR", message="no image")})
EMPTY = MalformedStep(content="", reason="the reply is empty")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (CALL, 'OCR(image="inputs/a.jpg", k=3)'),
        (CallStep(name="OCR", arguments="{broken"), "OCR({broken)"),
        (FAILED, 'OCR(image="inputs/a.jpg", k=3) [ARGS_ERROR: no image]'),
        (ANSWER, "answer: It is 7."),
        (EMPTY, "malformed (the reply is empty): "),
        (ThoughtStep(content="hm"), "thought"),
        (None, "nothing"),
    ],
)
def test_a_step_is_told_on_one_line(step: PredictedStep | None, said: str) -> None:
    assert step_text(step) == said


@pytest.mark.parametrize(
    ("came", "expected", "said"),
    [
        (CALL, CALL, "type, tool and arguments right"),
        (CallStep(name="OCR", arguments={}), CALL, "type and tool right, other arguments"),
        (CallStep(name="Plot", arguments={}), CALL, "type right, other tool"),
        (FAILED, CALL, "no hit: failed call instead of call"),
        (ANSWER, CALL, "no hit: answer instead of call"),
        (EMPTY, ANSWER, "no hit: malformed instead of answer"),
        (None, ANSWER, "no hit: nothing instead of answer"),
        (ANSWER, AnswerStep(content="other"), "type right"),
    ],
)
def test_a_verdict_says_why_a_step_counts(
    came: PredictedStep | None, expected: CallStep | AnswerStep, said: str
) -> None:
    assert verdict(came, expected) == said


def test_an_explanation_is_a_table_with_a_row_for_every_turn() -> None:
    task = make_task(CALL, ANSWER)
    rows = explanation(task, (AnswerStep(content="a | b\n<b>c</b>"),), 0.0).splitlines()
    assert len(rows) == 4
    assert "answer: a \\| b &lt;b>c&lt;/b>" in rows[2]
    assert rows[3].endswith("| nothing | no hit: nothing instead of answer |")


def test_long_texts_are_cut_in_the_table() -> None:
    rows = explanation(make_task(ANSWER), (AnswerStep(content="x" * 5000),), 0.0).splitlines()
    assert len(rows[2]) < 400


def test_the_last_answer_is_told_with_its_worth() -> None:
    task = make_task(CALL, ANSWER, answer=WhitelistAnswer(whitelist=(("7",),)))
    rows = explanation(task, (CALL, ANSWER), 1.0).splitlines()
    assert rows[3].endswith("| type right; the answer is worth 1.00 of 1 |")
    assert "worth" not in rows[2]
