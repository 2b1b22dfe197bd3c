"""Score records: the columns that reports and files promise."""

import pytest
from pydantic import ValidationError

from gta_bench.records.scores import (
    CategoryCounts,
    EndToEndScores,
    StepScores,
    StrictEndToEndCounts,
    StrictEndToEndScores,
    StrictStepScores,
)

STEP = ["inst_acc", "tool_acc", "arg_acc", "summ_acc", "tool_call", "tool_call_error"]
END_TO_END = [
    "ans_acc",
    "ans_acc_i",
    "p_f1",
    "o_f1",
    "l_f1",
    "c_f1",
    "tool_call",
    "tool_call_error",
]


def test_scores_have_the_published_columns_and_how_many_tasks_they_rest_on() -> None:
    assert list(StepScores.model_fields) == [*STEP, "n", "n_tasks"]
    assert list(EndToEndScores.model_fields) == [*END_TO_END, "n", "n_tasks"]


def test_strict_scores_add_columns_and_drop_none() -> None:
    added = set(StrictStepScores.model_fields) - set(StepScores.model_fields)
    assert added == {"arg_typed", "malformed"}
    assert set(StrictEndToEndScores.model_fields) - set(EndToEndScores.model_fields) == {
        "malformed"
    }


def test_a_score_keeps_every_digit_in_its_json_form() -> None:
    scores = StepScores(
        inst_acc=770 / 729 * 100,
        tool_acc=None,
        arg_acc=0.1 + 0.2,
        summ_acc=100.0,
        tool_call=557,
        tool_call_error=0,
        n=229,
        n_tasks=229,
    )
    assert '"inst_acc":105.6241426611797,' in scores.model_dump_json()
    assert StepScores.model_validate_json(scores.model_dump_json()) == scores


def test_counts_of_a_task_survive_writing_and_reading() -> None:
    counts = StrictEndToEndCounts(
        answer_total=1,
        answer_sum=0.25,
        image_sum=0.0,
        answer_i_total=1,
        categories={"logic": CategoryCounts(gold=2, predicted=1, hits=1)},
        tool_call=1,
        tool_call_error=0,
        predicted=True,
        malformed=0,
    )
    assert StrictEndToEndCounts.model_validate_json(counts.model_dump_json()) == counts


def test_scores_are_frozen_and_refuse_unknown_columns() -> None:
    counts = CategoryCounts()
    with pytest.raises(ValidationError):
        counts.gold = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        CategoryCounts.model_validate({"golden": 1})
