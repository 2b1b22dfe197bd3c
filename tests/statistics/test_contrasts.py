"""Contrasts of systems: decisions with a margin, what a plan can show, and parts of the error."""

import math

import numpy as np
import pytest

from gta_bench.statistics.contrasts import (
    Contrast,
    Spread,
    contrast_interval,
    decide_margin,
    find_detectable,
    plan_contrast,
    split_error,
    sum_variance,
)
from tests.statistics.study_simulation import Design, draw, observe

MODELS = Contrast(((0, 0), (0, 1)), ((1, 0), (1, 1)))
CROSSED = Contrast(((0, 0), (1, 1)), ((1, 0), (0, 1)), factor=2.0)
DESIGN = Design("normal", ((0.6, 0.5), (0.5, 0.5)), 0.3, 0.1, 0.05, 0.08, 0.12)


@pytest.mark.parametrize(
    ("gap", "margin", "side"),
    [(0.4, 0.1, "first"), (-0.4, 0.1, "second"), (0.01, 0.2, "same"), (0.3, 0.0, "first")],
)
def test_a_difference_is_on_a_side_of_the_margins(gap: float, margin: float, side: str) -> None:
    random = np.random.default_rng(2)
    second = random.uniform(0.4, 0.5, 40)
    first = second + gap + random.normal(0, 0.02, 40)
    found = decide_margin(first.tolist(), second.tolist(), margin=margin)
    assert found.side == side
    assert found.p_value < 0.001


def test_the_p_value_is_the_level_at_which_an_interval_meets_the_margin() -> None:
    random = np.random.default_rng(4)
    second = random.uniform(0.3, 0.6, 25)
    first = second + random.normal(0.12, 0.12, 25)
    found = decide_margin(first.tolist(), second.tolist(), margin=0.07)
    assert found.side == "first"
    level = 1 - found.p_value
    met = contrast_interval(first.tolist(), second.tolist(), level=level)
    assert met.low == pytest.approx(0.07, abs=0.002)


def test_an_estimate_on_the_border_is_on_no_side() -> None:
    assert decide_margin([0.5, 0.5], [0.5, 0.5]) == (None, 1.0)
    assert decide_margin([0.75, 0.75, 0.75], [0.5, 0.5, 0.5], margin=0.25) == (None, 1.0)


def test_wrong_sides_are_rare_if_the_difference_is_the_margin() -> None:
    random = np.random.default_rng(8)
    wrong = 0
    for _ in range(40):
        values = random.normal([0.55, 0.45], 0.15, (30, 2)).clip(0, 1)
        found = decide_margin(values[:, 0].tolist(), values[:, 1].tolist(), margin=0.1)
        wrong += found.p_value < 0.05
    assert wrong <= 6


def test_an_interaction_is_twice_the_difference_of_the_diagonals() -> None:
    scores = np.array([[[0.9, 0.5], [0.4, 0.3]], [[0.8, 0.6], [0.4, 0.2]]])
    weights = CROSSED.weights(2, 2)
    expected = ((scores[:, 0, 0] - scores[:, 1, 0]) - (scores[:, 0, 1] - scores[:, 1, 1])).mean()
    first = scores[:, [0, 1], [0, 1]].mean(axis=1).tolist()
    second = scores[:, [1, 0], [0, 1]].mean(axis=1).tolist()
    found = contrast_interval(first, second, factor=2.0)
    assert found.estimate == pytest.approx(expected)
    assert np.einsum("tma,ma->t", scores, weights).mean() == pytest.approx(expected)
    assert find_detectable(first, second, factor=2.0) == 2.0


@pytest.mark.parametrize("contrast", [MODELS, CROSSED])
@pytest.mark.parametrize("runs", [1, 3])
def test_the_planned_variance_is_that_of_simulated_tasks(contrast: Contrast, runs: int) -> None:
    random = np.random.default_rng(11)
    spread = Spread(0.1**2, 0.05**2, 0.08**2, 0.12**2)
    weights = contrast.weights(2, 2)
    scores = observe(DESIGN, draw(DESIGN, 20_000, random), runs, random)
    seen = np.einsum("tma,ma->t", scores.mean(axis=3), weights).var()
    assert sum_variance(weights, spread, runs=runs) == pytest.approx(seen, rel=0.05)
    parts = split_error(scores, weights)
    assert parts.standard_error == pytest.approx(math.sqrt(seen / 20_000), rel=0.01)
    if runs == 1:
        assert parts.runs is None
    else:
        share = spread.run / runs * float((weights**2).sum()) / seen
        assert parts.runs == pytest.approx(share, rel=0.1)


def test_a_planned_difference_is_found_four_times_in_five() -> None:
    random = np.random.default_rng(12)
    weights = np.array([[1.0], [-1.0]])
    least = plan_contrast(weights, Spread(0, 0, 0.01, 0.01), tasks=30, runs=2)
    found = 0
    for _ in range(300):
        gaps = least + random.normal(0, math.sqrt(2 * 0.015), 30)
        error = gaps.std(ddof=1) / math.sqrt(30)
        found += abs(gaps.mean() / error) > 2.0452
    assert 0.73 < found / 300 < 0.87


def test_more_questions_and_fewer_tasks_show_less() -> None:
    weights, spread = np.array([[1.0], [-1.0]]), Spread(0, 0, 0.01, 0.01)
    one = plan_contrast(weights, spread, tasks=30, runs=1)
    assert plan_contrast(weights, spread, tasks=30, runs=1, tests=4) > one
    assert plan_contrast(weights, spread, tasks=10, runs=1) > one
    assert math.isinf(plan_contrast(weights, spread, tasks=1, runs=1))


def test_the_error_of_one_task_is_unknown_and_of_equal_ones_nothing() -> None:
    weights = np.array([[1.0], [-1.0]])
    assert split_error(np.ones((1, 2, 1, 2)), weights) == (math.inf, None)
    assert split_error(np.ones((4, 2, 1, 2)), weights) == (0.0, 0.0)
