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
from gta_bench.tasks.scorers import explain_step, explain_steps, format_step
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
def test_a_step_is_one_line(step: PredictedStep | None, said: str) -> None:
    assert format_step(step) == said


@pytest.mark.parametrize(
    ("came", "expected", "said"),
    [
        (CALL, CALL, "correct type, tool and arguments"),
        (CallStep(name="OCR", arguments={}), CALL, "correct type and tool, wrong arguments"),
        (CallStep(name="Plot", arguments={}), CALL, "correct type, wrong tool"),
        (FAILED, CALL, "no hit: failed call instead of call"),
        (ANSWER, CALL, "no hit: answer instead of call"),
        (EMPTY, ANSWER, "no hit: malformed instead of answer"),
        (None, ANSWER, "no hit: nothing instead of answer"),
        (ANSWER, AnswerStep(content="other"), "correct type"),
    ],
)
def test_a_verdict_says_why_a_step_counts(
    came: PredictedStep | None, expected: CallStep | AnswerStep, said: str
) -> None:
    assert explain_step(came, expected) == said


def test_an_explanation_is_a_table_with_a_row_for_every_turn() -> None:
    task = make_task(CALL, ANSWER)
    rows = explain_steps(task, (AnswerStep(content="a | b\n<b>c</b>"),), 0.0).splitlines()
    assert len(rows) == 4
    assert "answer: a \\| b &lt;b>c&lt;/b>" in rows[2]
    assert rows[3].endswith("| nothing | no hit: nothing instead of answer |")


def test_long_texts_are_cut_in_the_table() -> None:
    rows = explain_steps(make_task(ANSWER), (AnswerStep(content="x" * 5000),), 0.0).splitlines()
    assert len(rows[2]) < 400


def test_the_last_answer_has_its_score() -> None:
    task = make_task(CALL, ANSWER, answer=WhitelistAnswer(whitelist=(("7",),)))
    rows = explain_steps(task, (CALL, ANSWER), 1.0).splitlines()
    assert rows[3].endswith("| correct type; the answer scores 1.00 of 1 |")
    assert "worth" not in rows[2]
