import numpy as np
import pytest

from gta_bench.reports.estimates import Part, pair_tasks, sum_side


def test_a_task_that_was_run_more_often_does_not_count_more() -> None:
    first = {("a", epoch): Part(float(epoch < 5), 1) for epoch in range(1, 9)}
    first |= {("b", epoch): Part(1.0, 1) for epoch in range(1, 9)}
    second = {("a", 1): Part(1.0, 1), ("b", 1): Part(0.0, 1)}
    found = pair_tasks(first, second, ["a", "b"], epochs=(8, 1))
    one, two = found.ratios()
    assert list(one.numerators) == [0.5, 1.0] and list(one.denominators) == [1.0, 1.0]
    assert list(two.numerators) == [1.0, 0.0]
    assert not found.lacking


def test_a_missing_epoch_is_a_part_of_its_task() -> None:
    parts = {("a", 1): Part(1.0, 1), ("a", 2): Part(0.0, 0, 1)}
    found = pair_tasks(parts, {("a", 1): Part(1.0, 1)}, ["a"], epochs=(3, 1))
    assert list(found.first.means.numerators) == [1.0]
    assert found.first.side.values[0] == pytest.approx(1 / 3)
    assert found.first.side.missing[0] == pytest.approx(2 / 3)
    assert found.common == (0,)


def test_what_one_run_lacks_is_as_large_as_in_the_other() -> None:
    first = {("a", 1): Part(3, 9), ("b", 1): Part(2, 5)}
    found = pair_tasks(first, {("a", 1): Part(1, 9)}, ["a", "b", "c"], epochs=(1, 1))
    assert list(found.second.side.missing) == [0, 5, 7]
    assert list(found.first.side.missing) == [0, 0, 7]
    assert found.common == (0,)


def test_a_task_with_nothing_to_measure_is_not_missing() -> None:
    """An image task has no answer to be right."""
    side = sum_side({("a", 1): Part(0, 0), ("b", 1): Part(1, 1)}, ["a", "b"], epochs=1)
    assert not np.any(side.missing)
