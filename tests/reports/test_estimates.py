import pytest

from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.reports.estimates import Part, estimates, workflow_parts
from tests.metrics.workflow_units import SEVEN, rows, unit


def test_a_task_that_passes_or_not_gets_wilsons_interval() -> None:
    found = estimates({"root_sr": [Part(str(n), n < 3, 1) for n in range(10)]})["root_sr"]
    # Wilson's formula with Student's quantile of 9 degrees of freedom, 2.262.
    assert (found.low, found.high) == pytest.approx((9.262, 64.278), abs=0.001)
    assert (found.text, found.span) == ("30.00", "9.26 to 64.28")


def test_epochs_of_a_task_count_as_one_thing() -> None:
    parts = [Part(str(n % 10), n % 10 < 5, 1) for n in range(40)]
    once = estimates({"root_sr": parts[:10]})["root_sr"]
    often = estimates({"root_sr": parts})["root_sr"]
    assert (once.n, often.n) == (10, 10)
    # Wilson over 40 tasks would be half as wide.
    assert often.high - often.low > 0.8 * (once.high - once.low)


def test_leaves_of_a_task_are_drawn_together_and_nothing_measured_is_no_zero() -> None:
    units = [unit(str(n)) for n in range(8)]
    said = [
        row
        for n in range(8)
        for row in rows({"a1": 9, "a2": 9, "b": 9} if n % 2 else {"a1": 1, "a2": 2, "b": 9}, str(n))
    ]
    scores = score_workflow(units, said, thresholds=SEVEN)
    found = estimates(workflow_parts(scores.judges[0].tasks, scores, units))
    assert found["leaf_sr"].value == pytest.approx(100 * 16 / 24)
    assert found["leaf_sr"].n == 8
    assert 0 <= found["root_score"].low < found["root_score"].value < found["root_score"].high <= 10
    assert found["root_score"].span.count(".") == 2
    assert "tool_sr" not in found


def test_the_same_scores_give_the_same_interval() -> None:
    parts = [Part(str(n), n % 3, 4) for n in range(30)]
    assert estimates({"leaf_sr": parts}) == estimates({"leaf_sr": parts})
