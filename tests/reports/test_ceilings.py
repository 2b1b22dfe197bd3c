"""Scores of a run beside the ceiling of its judge."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.ceiling import Ceiling, CeilingBy, ErrorRates, GoldScores, TaskErrors
from gta_bench.records.files import Deliverable
from gta_bench.records.judges import JudgeRegistry
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.ceilings import compare_with_ceilings
from gta_bench.statistics.ceiling import measure_rate
from tests.judging.builders import task

DELIVERED, NOTHING = 30, 10
NAMES: tuple[tuple[CeilingBy, str], ...] = (("all", "all"), ("file", "xlsx"))


def make_scores() -> WorkflowScores:
    """The judge passes every other of the delivered works; what was not delivered fails."""
    file = Deliverable(path="outputs/film.MP4", digest="0" * 64, size=1)
    units = [
        WorkflowUnit(
            task=task(str(number), leaves=2),
            deliverables=(file,) if number < DELIVERED else (),
            delivered=number < DELIVERED,
        )
        for number in range(DELIVERED + NOTHING)
    ]
    rows = [
        VerdictRow(
            key=VerdictKey(task=str(number), leaf=leaf, judge="j"),
            verdict=Scored(value=1.0 if number % 2 else 9.0),
        )
        for number in range(DELIVERED)
        for leaf in ("cp1-1", "cp1-2")
    ]
    return score_workflow(units, rows, thresholds=Thresholds(7, 7))


def make_ceiling(found: int = 8, passed: int = 9, intact: int = 10) -> Ceiling:
    rows = tuple(
        TaskErrors(task=str(number), found=found, broken=10, passed=passed, intact=intact)
        for number in range(40)
    )
    groups = tuple(
        ErrorRates(
            by=by,
            name=name,
            tasks=40,
            broken=400,
            sensitivity=measure_rate((row.found, row.broken) for row in rows),
            intact=40 * intact,
            specificity=measure_rate((row.passed, row.intact) for row in rows),
        )
        for by, name in NAMES
    )
    return Ceiling(
        created=datetime(2026, 11, 17, tzinfo=UTC),
        judge="j",
        digest="0" * 64,
        repeats=1,
        leaf_threshold=7,
        root_threshold=7,
        cost_usd=None,
        works=0,
        unknown=0,
        unscored=0,
        gold=GoldScores(leaf_sr=None, root_score=None, root_sr=None),
        groups=groups,
        suspects=(),
        rows=rows,
    )


def test_only_what_the_judge_decided_is_corrected() -> None:
    scores = make_scores()
    (found,) = compare_with_ceilings(scores, [make_ceiling()], JudgeRegistry())
    assert found.leaf_sr == pytest.approx(37.5)
    assert (found.leaves, found.judged, found.untested) == (80, 60, ("mp4",))
    assert found.corrected is not None
    # Of the delivered three quarters, (0.5 - 0.2) / 0.7 hold.
    assert found.corrected.estimate == pytest.approx(75 * 0.3 / 0.7)
    assert found.corrected.low < found.corrected.estimate < found.corrected.high <= 75


def test_a_leaf_that_a_check_decided_counts_as_it_is() -> None:
    scores = make_scores()
    (judge,) = scores.judges
    checked = tuple(
        one.model_copy(
            update={"leaves": tuple(leaf.model_copy(update={"by": "check"}) for leaf in one.leaves)}
        )
        for one in judge.tasks
    )
    whole = scores.model_copy(update={"judges": (judge.model_copy(update={"tasks": checked}),)})
    (found,) = compare_with_ceilings(whole, [make_ceiling()], JudgeRegistry())
    assert (found.judged, found.corrected, found.problem) == (0, None, None)


def test_the_reason_is_given_why_a_score_is_not_corrected() -> None:
    scores = make_scores()
    (blind,) = compare_with_ceilings(scores, [make_ceiling(found=1)], JudgeRegistry())
    assert (blind.corrected, blind.problem) == (None, "blind")
    (empty,) = compare_with_ceilings(scores, [make_ceiling(passed=0, intact=0)], JudgeRegistry())
    assert (empty.corrected, empty.problem, empty.specificity) == (None, None, None)
    other = make_ceiling().model_copy(update={"repeats": 3})
    (found,) = compare_with_ceilings(scores, [other], JudgeRegistry())
    assert (found.corrected, found.other) == (None, ("repeats (1 and 3)",))
    stranger = make_ceiling().model_copy(update={"judge": "k"})
    assert compare_with_ceilings(scores, [stranger], JudgeRegistry()) == ()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"found": 11}, "more leaves found than broken"),
        ({"passed": 11}, "more passed than intact"),
        ({"found": -1}, "greater than or equal to 0"),
        ({"task": "1"}, "a task has two rows"),
        ({"broken": 9}, "count different leaves"),
        ({"found": 7}, "different rates"),
    ],
)
def test_a_ceiling_whose_rows_contradict_themselves_or_its_groups_is_refused(
    row: dict[str, object], says: str
) -> None:
    """A row with 35 of 30 leaves passed once ended a report with a traceback."""
    found = make_ceiling().model_dump(mode="json")
    found["rows"][0] |= row
    with pytest.raises(ValidationError, match=says):
        Ceiling.model_validate_json(json.dumps(found))


@pytest.mark.parametrize(
    ("group", "says"),
    [
        (None, "the first group is not the one over all leaves"),
        ({"by": "file"}, "the first group is not the one over all leaves"),
        ({"sensitivity": None}, "leaves without a rate"),
        ({"sensitivity": {"high": 1.5}}, "not between 0 and 1"),
    ],
)
def test_a_ceiling_with_groups_that_cannot_be_is_refused(
    group: dict[str, object] | None, says: str
) -> None:
    found = make_ceiling().model_dump(mode="json")
    if group is None:
        found["groups"] = []
    elif isinstance(rate := group.get("sensitivity"), dict):
        found["groups"][0]["sensitivity"] |= rate
    else:
        found["groups"][0] |= group
    with pytest.raises(ValidationError, match=says):
        Ceiling.model_validate_json(json.dumps(found))
