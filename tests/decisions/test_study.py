"""The order of a study's units, and answers where scores are missing."""

from typing import Any

import numpy as np
import pytest

from gta_bench.decisions.study_file import find_contrast
from gta_bench.decisions.study_report import _answer_one, _Measured
from gta_bench.decisions.study_run import (
    Coverage,
    RoundPart,
    count_complete,
    cover,
    list_rounds,
    list_units,
    run_rounds,
)
from gta_bench.records.base import Record
from gta_bench.records.run import RunSpec
from gta_bench.records.study import StudyFile
from gta_bench.records.workflow_scores import JudgeScores, TaskScore, WorkflowScores

STUDY = StudyFile.model_validate(
    {
        "name": "x",
        "out": "runs/x",
        "datasets": {"step": {"run": "atomic"}, "long": {"run": "atomic"}},
        "models": {"a": {}, "b": {}},
        "agents": {"x": {}, "y": {}},
        "budget": {"calls": 1},
        "questions": [
            {"name": "models", "models": ["a", "b"], "dataset": "step"},
            {"name": "agents", "agents": ["y", "x"], "dataset": "step"},
            {"name": "pair", "systems": ["b+x", "a+y"], "dataset": "step"},
            {
                "name": "both",
                "kind": "interaction",
                "models": ["a", "b"],
                "agents": ["x", "y"],
                "dataset": "step",
            },
        ],
    }
)
BLOCKS = {"step": (("1", "2"), ("3",)), "long": (("7",), ("8",), ("9",))}


@pytest.mark.parametrize(
    ("place", "weights"),
    [
        (0, [[0.5, 0.5], [-0.5, -0.5]]),
        (1, [[-0.5, 0.5], [-0.5, 0.5]]),
        (2, [[0, -1], [1, 0]]),
        (3, [[1, -1], [-1, 1]]),
    ],
)
def test_a_question_is_a_contrast_of_systems(place: int, weights: list[list[float]]) -> None:
    found = find_contrast(STUDY, STUDY.questions[place])
    assert found.weights(2, 2).tolist() == weights


def test_every_round_has_the_same_block_for_all_systems_and_another_first_one() -> None:
    rounds = list_rounds(STUDY.cells, BLOCKS)
    assert [len(parts) for parts in rounds] == [8, 8, 4]
    for number, parts in enumerate(rounds):
        for dataset, blocks in BLOCKS.items():
            own = [part for part in parts if part.cell.dataset == dataset]
            assert {part.tasks for part in own} <= {*blocks[number : number + 1]}
            assert len({part.cell.system for part in own}) in (0, 4)
    assert len({parts[0].cell.system for parts in rounds}) == 3


def test_a_round_is_finished_before_the_next_and_what_is_done_is_left_out() -> None:
    rounds = list_rounds(STUDY.cells, BLOCKS)
    played: list[RoundPart] = []

    def play(part: RoundPart) -> str | None:
        played.append(part)
        return "enough" if len(played) == 10 else None

    assert run_rounds(rounds, lambda part: part in rounds[0][:3], lambda _: None, play) == "enough"
    assert played == [*rounds[0][3:], *rounds[1][:5]]
    assert run_rounds(rounds, lambda _: False, lambda left: f"{len(left)} left", play) == "8 left"
    assert run_rounds(rounds, lambda _: True, lambda _: "no", play) is None


def test_a_block_is_complete_if_every_system_has_tried_all_of_it() -> None:
    every = frozenset(list_units(("1", "2", "3"), 2))
    whole, part = Coverage(every, every), Coverage(frozenset(), every - {("3", 2)})
    assert count_complete(BLOCKS["step"], [whole, whole], epochs=2) == 2
    assert count_complete(BLOCKS["step"], [whole, part], epochs=2) == 1
    assert count_complete(BLOCKS["step"], [], epochs=2) == 2


def make(kind: type[Record], **fields: Any) -> Any:
    """A record of which nothing but these fields is looked at."""
    return kind.model_construct(**fields)


def test_a_unit_has_a_score_by_the_judge_of_the_study_whatever_others_left_out() -> None:
    """A judge that was replaced, because it failed, once kept its units from being done."""
    failed, replaced = (
        make(JudgeScores, judge=name, tasks=(make(TaskScore, task="1", epoch=1, root=root),))
        for name, root in (("failed", None), ("replaced", 7.0))
    )
    scores = make(WorkflowScores, judges=(failed, replaced), unscored=())
    spec = make(RunSpec, tasks=("1",), epochs=1)
    assert cover(spec, scores, "replaced").scored == {("1", 1)}
    assert cover(spec, scores, "failed").scored == cover(spec, scores).scored == frozenset()


def test_an_answer_that_missing_scores_could_reverse_is_not_decided() -> None:
    scores = np.zeros((40, 2, 2, 1))
    scores[:, 0] = 1.0
    whole = _answer_one(STUDY, STUDY.questions[0], _Measured("inst_acc", None, scores))
    assert whole is not None
    assert (whole.answer, whole.n, whole.values) == ("first", 40, (100.0, 0.0))
    few, many = scores.copy(), scores.copy()
    few[:2, 0, 0] = many[:30] = np.nan
    found = _answer_one(STUDY, STUDY.questions[0], _Measured("inst_acc", None, few))
    assert found is not None
    assert (found.answer, found.n, found.n_tasks) == ("first", 38, 40)
    assert found.p_value >= whole.p_value
    lost = _answer_one(STUDY, STUDY.questions[0], _Measured("inst_acc", None, many))
    assert lost is not None
    assert (lost.answer, lost.n, lost.p_value) == ("not decided", 10, 1.0)
    none = np.full((4, 2, 2, 1), np.nan)
    assert _answer_one(STUDY, STUDY.questions[0], _Measured("inst_acc", None, none)) is None
    # A system that a question is not about may lack anything.
    scores[:, 1, 1] = np.nan
    pair = _answer_one(STUDY, STUDY.questions[2], _Measured("inst_acc", None, scores))
    assert pair is not None and pair.n == 40 and pair.answer == "second"
