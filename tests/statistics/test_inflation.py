"""The test for outcomes that are stated better than repeating them gives."""

import numpy as np
import pytest

from gta_bench.records.leaderboard import LEVEL
from gta_bench.statistics.inflation import find_inflation, inflation_p, inflation_power


def outcomes(better: int, worse: int, same: int, tasks: int) -> dict[str, list[tuple[bool, bool]]]:
    """Outcomes dealt over so many tasks."""
    all_of_them = [(True, False)] * better + [(False, True)] * worse + [(True, True)] * same
    return {str(task): all_of_them[task::tasks] for task in range(tasks)}


def test_outcomes_that_agree_support_what_was_stated() -> None:
    found = find_inflation(outcomes(10, 10, 180, 100), effect=0.1, seed=1)
    assert (found.n, found.tasks, found.better, found.worse) == (200, 100, 10, 10)
    assert (found.agreement, found.difference) == (0.9, 0.0)
    assert found.p_value > 0.4
    assert found.power > 0.8
    assert found.supports and not found.disagrees


def test_ten_percent_better_outcomes_are_found() -> None:
    found = find_inflation(outcomes(30, 10, 160, 20), effect=0.1, seed=1)
    assert found.difference == pytest.approx(0.1)
    assert found.p_value < 0.01
    assert found.disagrees and not found.supports


def test_too_few_outcomes_support_nothing() -> None:
    found = find_inflation(outcomes(0, 0, 9, 1), effect=0.1, seed=1)
    assert (found.p_value, found.kappa) == (1.0, None)
    assert not found.supports and not found.disagrees


def test_few_tasks_do_not_show_that_whole_tasks_were_turned() -> None:
    """The power was that against a cheat who turns leaves anywhere: 0.9."""
    found = find_inflation(outcomes(10, 10, 180, 20), effect=0.1, seed=1)
    assert found.power < 0.5 and not found.supports


def test_raised_scores_are_found_where_nothing_else_passes() -> None:
    pairs = [(6.9, 2.0)] * 40 + [(9.0, 9.0)] * 20
    tasks = {str(task): pairs[task::20] for task in range(20)}
    found = find_inflation(tasks, effect=0.1, seed=1, threshold=7)
    assert (found.better, found.worse, found.agreement) == (0, 0, 1.0)
    assert found.disagrees


def test_worse_outcomes_than_repeated_ones_are_no_cheat() -> None:
    assert find_inflation(outcomes(5, 40, 155, 20), effect=0.1, seed=1).p_value > 0.95


def test_the_test_is_exact_where_leaves_of_a_task_hang_together() -> None:
    """Known truth: 16 tasks whose ten leaves all flip together, in honest repetitions."""
    rng = np.random.default_rng(7)
    found = 0
    for seed in range(400):
        signs = rng.integers(0, 2, 16)
        tasks = {str(n): [(bool(sign), not sign)] * 10 for n, sign in enumerate(signs)}
        found += inflation_p(tasks, seed=seed) < LEVEL
    assert found / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


@pytest.mark.parametrize(
    ("disagreement", "least", "most"), [(0.0, 0.99, 1.0), (0.1, 0.88, 0.97), (0.4, 0.45, 0.75)]
)
def test_the_power_is_that_of_an_independent_simulation(
    disagreement: float, least: float, most: float
) -> None:
    sizes = [10] * 20
    stated = inflation_power(sizes, disagreement=disagreement, effect=0.1, seed=3)
    assert least <= stated <= most
    rng = np.random.default_rng(11)
    hits = 0
    for seed in range(200):
        drawn = rng.random((20, 10))
        worse = drawn < disagreement / 2
        better = ~worse & (drawn < disagreement + 0.1)
        tasks = {
            str(n): [
                (bool(up) or not bool(down), not bool(up))
                for up, down in zip(better[n], worse[n], strict=True)
            ]
            for n in range(20)
        }
        hits += inflation_p(tasks, seed=seed) < LEVEL
    assert hits / 200 == pytest.approx(stated, abs=0.11)
