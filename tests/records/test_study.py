"""The records of a study: what its file must not say, and what is counted as spent."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from gta_bench.records.study import (
    StudyAssumptions,
    StudyBudget,
    StudyFile,
    StudyLog,
    StudyQuestion,
    StudySpent,
    StudyVersion,
)

FILE: dict[str, Any] = {
    "name": "size",
    "out": "runs/size",
    "datasets": {"step": {"run": "atomic"}, "files": {"run": "workflow"}},
    "models": {"a": {}, "b": {}},
    "agents": {"x": {}, "y": {}},
    "budget": {"hours": 1},
    "questions": [{"name": "one", "models": ["a", "b"], "dataset": "files"}],
}


def question(**changes: Any) -> dict[str, Any]:
    return {**FILE, "questions": [{"name": "one", "dataset": "step", **changes}]}


def test_a_file_has_a_run_for_every_system_and_dataset() -> None:
    study = StudyFile.model_validate(FILE)
    assert [one.name for one in study.systems] == ["a+x", "a+y", "b+x", "b+y"]
    assert study.cells[-1].folder == "files/b/y"
    assert (study.kind_of("step"), study.kind_of("files")) == ("atomic", "workflow")
    assert study.dataset_of(study.questions[0]) == "files"
    alone = StudyFile.model_validate(
        {
            **FILE,
            "datasets": {"step": {"run": "atomic"}},
            "questions": [{"name": "one", "agents": ["x", "y"]}],
        }
    )
    assert alone.dataset_of(alone.questions[0]) == "step"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (question(models=["a", "c"]), "no model 'c'; the study has: a, b"),
        (question(agents=["x", "z"]), "no agent 'z'"),
        (question(systems=["a+x", "b+z"]), "no system 'b+z'"),
        (question(models=["a", "b"], dataset=None), "name its `dataset`, one of: step, files"),
        (question(models=["a", "b"], dataset="x"), "no dataset 'x'"),
        (question(models=["a", "b"], agents=["x", "y"]), "exactly one of"),
        (question(kind="interaction", models=["a", "b"]), "has `models` and `agents`"),
        (question(models=["a", "a"]), "both sides are the same"),
        ({**FILE, "datasets": {"step": {"run": "x"}}}, "[datasets.step] needs `run"),
        ({**FILE, "questions": FILE["questions"] * 2}, "two questions have the same name"),
    ],
)
def test_a_question_about_what_is_not_there_is_refused(file: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        StudyFile.model_validate(file)
    assert said in str(caught.value)


def test_a_budget_needs_a_limit_and_a_pilot_two_runs() -> None:
    with pytest.raises(ValidationError, match="has no limit"):
        StudyBudget()
    with pytest.raises(ValidationError, match="needs two runs"):
        StudyAssumptions(pilot=("runs/a",))


def test_an_interaction_names_both_factors() -> None:
    found = StudyQuestion(name="both", kind="interaction", models=("a", "b"), agents=("x", "y"))
    assert found.margin == 0


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        (StudySpent(hours=2), "2 hours is spent"),
        (StudySpent(cost_usd=3), "$3 is spent"),
        (StudySpent(calls=1000), "1,000 model calls is spent"),
        (StudySpent(hours=1.9, cost_usd=2.9, calls=999), None),
    ],
)
def test_the_limit_that_is_reached_is_named(spent: StudySpent, said: str | None) -> None:
    found = spent.find_reached(StudyBudget(hours=2, cost_usd=3, calls=1000))
    assert (found is None) if said is None else (found is not None and found.endswith(said))
    assert StudySpent(hours=99).find_reached(StudyBudget(calls=1)) is None


def test_the_time_of_a_command_grows_and_is_added_once() -> None:
    now = datetime(2026, 11, 18, tzinfo=UTC)
    log = StudyLog(versions=(StudyVersion(when=now, digest="a"),))
    for minutes in (30, 60):
        log = log.at_work(now, now + timedelta(minutes=minutes))
    later = now + timedelta(days=1)
    log = log.at_work(later, later + timedelta(minutes=30))
    assert (log.hours, len(log.sessions), log.digests) == (1.5, 2, ("a",))
