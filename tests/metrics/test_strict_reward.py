"""The dense reward: the strict step metrics, one action at a time."""

from collections.abc import Mapping

import pytest

from gta_bench.metrics.reference import reference_steps
from gta_bench.metrics.similarity import exact
from gta_bench.metrics.strict.steps import compute_step_reward
from gta_bench.records.atomic import AtomicTask, WhitelistAnswer
from gta_bench.records.steps import AnswerStep, MalformedStep, PredictedStep, ThoughtStep
from tests.metrics.atomic_variants import FAILURE, call, make_task

OCR = call("OCR", image="inputs/a.jpg")
SAID = AnswerStep(content="it is 5")
FIVE = WhitelistAnswer(whitelist=(("5",),))
TASK = make_task(OCR, SAID, answer=FIVE)
PICTURE = make_task(OCR, SAID, answer=None)
ODD = make_task(OCR, SAID, answer=WhitelistAnswer(whitelist=(("6",),)))


@pytest.mark.parametrize(
    ("task", "position", "step", "worth"),
    [
        (TASK, 0, OCR, 1.0),
        (TASK, 0, call("Plot", command="x"), 1 / 3),
        (TASK, 0, call("OCR", image="inputs/b.jpg"), 2 / 3),
        (TASK, 0, OCR.model_copy(update={"error": FAILURE}), 0.0),
        (TASK, 0, SAID, 0.0),
        (TASK, 0, MalformedStep(content="", reason="empty"), 0.0),
        (TASK, 0, ThoughtStep(content="hm"), 0.0),
        (TASK, 1, SAID, 1.0),
        (TASK, 1, AnswerStep(content="5"), 1.0),
        (TASK, 1, AnswerStep(content="7"), 0.5),
        (TASK, 1, AnswerStep(content=" "), 0.0),
        (TASK, 1, OCR, 0.0),
        (TASK, 2, SAID, 0.0),
        (PICTURE, 1, AnswerStep(content="There it is."), 1.0),
        # The reference's own words, which its own whitelist does not match.
        (ODD, 1, SAID, 1.0),
    ],
)
def test_a_step_is_worth_what_the_strict_metrics_see_in_it(
    task: AtomicTask, position: int, step: PredictedStep, worth: float
) -> None:
    found = compute_step_reward(task, position, step, similarity=exact)
    assert found == pytest.approx(worth / 2), "two steps share the reward of 1"


def test_every_reference_is_worth_one(atomic_tasks: Mapping[str, AtomicTask]) -> None:
    for task in atomic_tasks.values():
        steps = enumerate(reference_steps(task))
        total = sum(
            compute_step_reward(task, place, step, similarity=exact) for place, step in steps
        )
        assert total == pytest.approx(1.0), task.id
