import pytest

from gta_bench.agents.catalog import gold, silent
from gta_bench.agents.contract import History, Setup, make_step_histories
from gta_bench.datasets.model import AtomicDataset
from gta_bench.errors import UsageError
from gta_bench.records.dialogue import CallTurn, UserTurn
from gta_bench.records.steps import AnswerStep, CallStep, MalformedStep
from tests.agents.builders import HISTORIES, TASK, decide

WITH_REFERENCE = Setup(references={TASK.id: TASK.steps})


def test_gold_gives_the_reference_step_of_every_place() -> None:
    steps = [decide(gold, history, setup=WITH_REFERENCE).step for history in HISTORIES]
    assert steps == [
        CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"}),
        CallStep(
            name="DrawBox",
            arguments={"image": "inputs/menu.jpg", "bbox": "(0, 0, 9, 9)", "annotation": "7 €"},
        ),
        AnswerStep(content="It costs 7."),
    ]


def test_gold_has_nothing_to_say_behind_the_end_of_the_reference() -> None:
    history = History(task=TASK.id, turns=TASK.dialogue, mode="end-to-end")
    assert decide(gold, history, setup=WITH_REFERENCE).step == MalformedStep(
        content="", reason="the reference has no further step"
    )


def test_gold_without_a_reference_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no reference for task '7'"):
        decide(gold, HISTORIES[0])


def test_silent_is_malformed_everywhere() -> None:
    for history in (*HISTORIES, History(task="x", turns=(UserTurn(content="?"),))):
        decision = decide(silent, history)
        assert decision.step == MalformedStep(content="", reason="the reply is empty")


def test_neither_asks_a_model() -> None:
    assert decide(gold, HISTORIES[0], setup=WITH_REFERENCE).output is None
    assert decide(silent, HISTORIES[0]).output is None


def test_gold_replays_all_770_steps_of_the_dataset(atomic: AtomicDataset) -> None:
    setup = Setup(references={task.id: task.steps for task in atomic.tasks.values()})
    steps = 0
    for task in list(atomic.tasks.values()):
        for history, turn in zip(make_step_histories(task), task.steps, strict=True):
            step = decide(gold, history, setup=setup).step
            assert isinstance(step, CallStep) == isinstance(turn, CallTurn)
            steps += 1
    assert steps == 770
