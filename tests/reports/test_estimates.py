import pytest

from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.reports.estimates import Estimate, Part, Parts, estimates, make_workflow_parts
from tests.metrics.workflow_units import SEVEN, rows, unit


def rate(parts: Parts) -> Estimate:
    tasks = list(dict.fromkeys(task for task, _ in parts))
    epochs = max(epoch for _, epoch in parts)
    return estimates({"root_sr": parts}, tasks, epochs=epochs)["root_sr"]


def test_a_task_that_passes_or_not_gets_wilsons_interval() -> None:
    found = rate({(str(n), 1): Part(n < 3, 1) for n in range(10)})
    # Wilson's formula with Student's quantile of 9 degrees of freedom, 2.262.
    assert (found.low, found.high) == pytest.approx((9.262, 64.278), abs=0.001)
    assert (found.text, found.span) == ("30.00", "9.26 to 64.28")


def test_epochs_of_a_task_count_as_one_thing() -> None:
    once = rate({(str(n), 1): Part(n < 5, 1) for n in range(10)})
    often = rate({(str(n % 10), 1 + n // 10): Part(n % 10 < 5, 1) for n in range(40)})
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
    parts = make_workflow_parts(scores.judges[0].tasks, scores, units)
    found = estimates(parts, [one.task.id for one in units], epochs=1)
    assert found["leaf_sr"].value == pytest.approx(100 * 16 / 24)
    assert found["leaf_sr"].n == 8
    assert 0 <= found["root_score"].low < found["root_score"].value < found["root_score"].high <= 10
    assert found["root_score"].span.count(".") == 2
    assert "tool_sr" not in found


def test_what_is_missing_bounds_a_score() -> None:
    """Two of ten units were not run, and one has no root."""
    parts = {(str(n), 1): Part(n < 3, 1) for n in range(7)} | {("7", 1): Part(0, 0, 1)}
    found = estimates({"root_sr": parts}, [str(n) for n in range(10)], epochs=1)["root_sr"]
    assert found.value == pytest.approx(100 * 3 / 7)
    assert (found.n, found.cases) == (7, "30.00 to 60.00")
    assert rate({("a", 1): Part(1, 1), ("b", 1): Part(0, 1)}).cases == ""
