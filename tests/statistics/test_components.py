"""Variance components against designs whose parts are known."""

import math

import numpy as np
import pytest

from gta_bench.statistics.components import estimate_components
from tests.statistics.study_simulation import Design, draw, observe, true_components

MEANS = ((0.4, 0.3), (0.6, 0.5), (0.5, 0.7))
NORMAL = Design("normal", MEANS, 0.3, 0.15, 0.1, 0.12, 0.2)
PASSES = Design("passes", ((-0.5, -1.0), (0.5, 0.3), (0.0, 0.2)), 1.5, 0.8, 0.5, 0.5)


@pytest.mark.parametrize("design", [NORMAL, PASSES])
@pytest.mark.parametrize("runs", [2, 3])
def test_estimates_have_no_bias_and_intervals_contain_the_truth(design: Design, runs: int) -> None:
    random = np.random.default_rng(runs)
    truth = true_components(design, random)
    sums = dict.fromkeys(truth, 0.0)
    covered = dict.fromkeys(truth, 0)
    rounds, tasks = 60, 24
    for _ in range(rounds):
        parts = estimate_components(observe(design, draw(design, tasks, random), runs, random))
        assert sum(part.share for part in parts) == pytest.approx(1)
        for part in parts:
            sums[part.source] += part.variance.estimate / rounds
            inside = part.variance.low <= truth[part.source] <= part.variance.high
            covered[part.source] += inside
    for source, true in truth.items():
        # Estimates below 0 are shown as 0, which raises the mean of what is nearly 0.
        assert true * 0.75 < sums[source] < true * 1.25 + 0.005, source
        assert covered[source] >= 0.8 * rounds, source


def test_the_parts_of_scores_without_chance_are_exact() -> None:
    """Four tasks, two models, two agents: only the models differ, by 0.4.

    No task tells how far others would be from that, so the intervals are unknown.
    """
    scores = np.zeros((4, 2, 2, 2))
    scores[:, 1] = 0.4
    found = {one.source: one for one in estimate_components(scores)}
    assert found["model"].variance.estimate == pytest.approx(0.04)
    assert {(one.variance.low, one.variance.high) for one in found.values()} == {(0, math.inf)}
    assert found["model"].share == pytest.approx(1)
    assert not any(one.with_runs for one in found.values())
    assert len(found) == 8


def test_an_interval_ends_at_the_largest_variance_that_scores_can_have() -> None:
    """Rounding noise had one up to 2.6e19, where the variance of a share is 0.25 at most."""
    rows = [[[0, 1], [1, 0]], [[0, 1], [1, 1]], [[0, 1], [0, 1]]]
    scores = np.array(rows, dtype=float)[..., None]
    free, capped = (estimate_components(scores, most=most) for most in (math.inf, 0.25))
    assert max(one.variance.high for one in free) > 0.25
    for one, other in zip(free, capped, strict=True):
        assert one.variance.low == other.variance.low
        most = math.inf if math.isinf(one.variance.high) else max(one.variance.estimate, 0.25)
        assert other.variance.high == min(one.variance.high, most)


def test_one_run_leaves_the_highest_interaction_and_the_runs_in_one_part() -> None:
    random = np.random.default_rng(5)
    parts = estimate_components(observe(NORMAL, draw(NORMAL, 300, random), 1, random))
    together = {one.source: one for one in parts if one.with_runs}
    assert [*together] == ["task x model x agent"]
    expected = NORMAL.run**2 + NORMAL.task_system**2
    assert together["task x model x agent"].variance.estimate == pytest.approx(expected, rel=0.2)


def test_a_factor_with_one_level_has_no_part() -> None:
    random = np.random.default_rng(6)
    scores = observe(NORMAL, draw(NORMAL, 20, random), 2, random)
    assert [one.source for one in estimate_components(scores[:, :1, :1])] == ["task", "run"]
    (alone,) = estimate_components(scores[:, :1, :1, :1])
    assert (alone.source, alone.with_runs) == ("task", True)
    assert alone.variance.estimate == pytest.approx(scores[:, 0, 0, 0].var(ddof=1))


def test_equal_scores_have_no_variance_and_two_tasks_no_upper_end() -> None:
    parts = estimate_components(np.ones((3, 2, 1, 2)))
    assert all(one.variance.estimate == one.share == 0 for one in parts)
    two = estimate_components(np.array([[[[0.0, 1.0]]], [[[1.0, 1.0]]]]))
    assert all(one.variance.low == 0 and np.isinf(one.variance.high) for one in two)
    with pytest.raises(ValueError, match="two tasks"):
        estimate_components(np.ones((1, 2, 2, 2)))
