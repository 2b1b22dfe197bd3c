"""A judge compared with people, with some works that delivered nothing."""

import pytest

from gta_bench.judge_quality.calibration import calibrate
from gta_bench.metrics.labels import People
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from tests.judging.builders import task

DELIVERED, NOTHING, LABELED = 20, 20, 10


def unit(number: int) -> WorkflowUnit:
    return WorkflowUnit(
        task=task(str(number), leaves=2), deliverables=(), delivered=number < DELIVERED
    )


@pytest.mark.parametrize("chance", [None, LABELED / DELIVERED])
def test_tasks_that_delivered_nothing_stay_at_zero(chance: float | None) -> None:
    """People pass every other work, a strict judge one of four; missing works fail by rule."""
    units = [unit(number) for number in range(DELIVERED + NOTHING)]
    rows = [
        VerdictRow(
            key=VerdictKey(task=str(number), leaf=leaf, judge="j"),
            verdict=Scored(value=9.0 if number % 4 == 0 else 1.0),
        )
        for number in range(DELIVERED)
        for leaf in ("cp1-1", "cp1-2")
    ]
    scores = score_workflow(units, rows, thresholds=Thresholds(7, 7))
    settled = {
        (str(number), 1, leaf): 1.0 if number % 2 else 9.0
        for number in range(LABELED)
        for leaf in ("cp1-1", "cp1-2")
    }
    chances = {} if chance is None else dict.fromkeys(settled, chance)
    found = calibrate(scores.judges[0], People(settled, chances), units, scores)
    assert found is not None
    assert found.tasks == LABELED
    assert [score.name for score in found.scores] == ["Root SR", "Leaf SR", "Root"]
    for score in found.scores[:2]:
        assert score.raw == pytest.approx(12.5)
        assert score.corrected.n == LABELED
        assert score.corrected.estimate == pytest.approx(25, abs=3)
        assert score.corrected.high < 50
