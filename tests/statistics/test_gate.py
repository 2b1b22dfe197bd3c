"""The gate's tests: against exact tests, a simulation with known truth, and each other."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom  # type: ignore[import-untyped]

from gta_bench.statistics.gate import (
    bet_against,
    decide_bounded,
    decide_fixed,
    decide_sequential,
    find_lower_bound,
    find_next_look,
    find_p_value,
    shuffle_tasks,
)
from tests.statistics.gate_simulation import (
    KINDS,
    decide_often,
    decide_once,
    simulate_drops,
    simulate_running,
)

DROPS = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 1 / 3, 1.0]), min_size=1, max_size=30)


@pytest.mark.parametrize(("lost", "won", "same"), [(5, 0, 15), (8, 2, 0), (20, 10, 99), (0, 3, 1)])
def test_without_a_margin_it_is_the_exact_sign_test(lost: int, won: int, same: int) -> None:
    drops = [1.0] * lost + [-1.0] * won + [0.0] * same
    assert find_p_value(drops, 0.0) == pytest.approx(binom.sf(lost - 1, lost + won, 0.5))


@pytest.mark.parametrize("tasks", [1, 5, 29, 229])
def test_if_nothing_changed_it_is_the_exact_binomial_test(tasks: int) -> None:
    assert find_p_value([0.0] * tasks, -0.1) == pytest.approx(0.9**tasks, abs=1e-9)
    assert find_lower_bound([0.0] * tasks) == pytest.approx(0.05 ** (1 / tasks) - 1)


def test_any_other_drops_agree_with_draws_of_the_weights() -> None:
    random = np.random.default_rng(4)
    drops = random.uniform(-1, 1, 12)
    weights = random.exponential(size=(400_000, 13))
    drawn = np.mean(weights @ (np.append(drops, -1.0) - 0.05) <= 0)
    assert find_p_value(drops.tolist(), 0.05) == pytest.approx(drawn, abs=0.004)


@given(DROPS, st.integers(0, 29), st.floats(0, 0.5))
def test_a_smaller_drop_never_turns_a_pass_into_a_failure(
    drops: list[float], place: int, margin: float
) -> None:
    better = [*drops]
    better[place % len(drops)] = -1.0
    order = ["not worse", "undecided", "worse"]
    for decide in (decide_fixed, decide_sequential):
        before, after = (decide(own, margin=margin).decision for own in (drops, better))
        assert order.index(after) <= order.index(before)


@given(DROPS)
def test_limits_and_tests_agree(drops: list[float]) -> None:
    low, high = find_lower_bound(drops), -find_lower_bound([-one for one in drops])
    assert -1 <= low <= float(np.mean(drops)) + 1e-9
    assert float(np.mean(drops)) - 1e-9 <= high <= 1
    found = decide_fixed(drops, margin=0.2)
    if abs(low) > 1e-6:
        assert (low > 0) == (found.p_worse <= 0.05)
    if abs(high - 0.2) > 1e-6:
        assert (high < 0.2) == (found.p_margin <= 0.05)


def test_a_real_drop_that_is_smaller_than_the_margin_is_not_worse() -> None:
    found = decide_fixed([1.0] * 6 + [0.0] * 126, margin=0.15)
    assert found.decision == "not worse"
    assert max(found.p_worse, found.p_margin) <= 0.05


def test_the_sequential_test_stops_at_the_first_task_that_decides() -> None:
    found = decide_sequential([1.0] * 20 + [-1.0] * 100, margin=0.1)
    assert (found.decision, found.used) == ("worse", 6)
    assert found.p_worse <= 0.05 < found.p_margin
    good = decide_sequential([0.0] * 60, margin=0.1)
    assert (good.decision, good.used) == ("not worse", 38)
    none = decide_sequential([1.0, -1.0], margin=0.1)
    assert (none.decision, none.used) == ("undecided", 2)


def test_the_capital_is_fair_under_the_null() -> None:
    """The mean over all outcomes of two tasks is 1, at the null without and with a margin."""
    for null, chance in ((0.0, 0.5), (-0.1, 0.45)):
        outcomes = {1.0: chance, -1.0: 1 - chance}
        mean = sum(
            outcomes[one] * outcomes[two] * float(bet_against(np.array([one, two]), null)[-1])
            for one in outcomes
            for two in outcomes
        )
        assert mean == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_false_alarms_and_false_passes_stay_below_five_percent(kind: str) -> None:
    """A short form of tests/measure/test_gate.py; `uneven` and `opposed` cancel across tasks."""
    datasets = 1500
    for drop, wrong in ((0.0, "worse"), (0.1, "not worse")):
        drops = simulate_drops(kind, tasks=30, drop=drop, repeats=(1, 1), datasets=datasets)
        for found in (decide_once(drops, 0.1), decide_often(drops, 0.1)[0]):
            rate = sum(one == wrong for one in found) / datasets
            assert rate <= 0.05 + 3.5 * sqrt(0.05 * 0.95 / datasets)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_that_runs_new_decides_by_the_order_whatever_finishes_first(kind: str) -> None:
    """A short form of tests/measure/test_gate.py; the simulation checks every single decision."""
    found = simulate_running(kind, tasks=20, drop=0.0, datasets=200, margin=0.1, slow=5.0)
    assert found.decided.count("worse") <= 10
    assert found.killed > 50
    assert all(used <= started for used, started in zip(found.used, found.started, strict=True))


def test_the_next_look_is_where_the_fewest_tasks_could_decide() -> None:
    nothing = decide_bounded([(0.0, 1.0)] * 60, margin=0.1)
    assert (nothing.decision, find_next_look(nothing, scored=0)) == (None, 6)
    assert find_next_look(nothing, scored=0, at_once=8) == 8
    same = decide_bounded([(0.0, 0.0)] * 37 + [(0.0, 1.0)] * 23, margin=0.1)
    assert find_next_look(same, scored=37) == 38
    few = decide_bounded([(0.0, 1.0)] * 4, margin=0.1)
    assert (few.decision, find_next_look(few, scored=0)) == ("undecided", None)
    lost = decide_bounded([(0.0, 1.0)] * 60, margin=0.1)
    assert find_next_look(lost, scored=0, tried=60) is None
    assert find_next_look(lost, scored=0, tried=20) == 21


def test_the_simulation_decides_as_the_gate_does() -> None:
    drops = simulate_drops("alike", tasks=40, drop=0.2, repeats=(3, 1), datasets=50)
    words, used = decide_often(drops, 0.1)
    found = [decide_sequential(row, margin=0.1) for row in drops.tolist()]
    assert words == [one.decision for one in found]
    assert used.tolist() == [one.used for one in found]
    assert {"worse", "undecided"} <= {*words}


def test_an_order_that_is_not_random_would_raise_false_alarms() -> None:
    """Why the order must be random: losers first, and gains and losses that cancel alarm always."""
    drops = -np.sort(-simulate_drops("opposed", tasks=40, drop=0.0, repeats=(1, 1), datasets=5))
    assert decide_often(drops, 0.1)[0] == ["worse"] * 5


def test_the_random_order_depends_on_names_and_seed_only() -> None:
    tasks = [str(number) for number in range(50)]
    order = shuffle_tasks(tasks, "night 1")
    assert order == shuffle_tasks(tasks[::-1], "night 1") != shuffle_tasks(tasks, "night 2")
    assert sorted(order) == sorted(tasks)
    assert [one for one in order if one != "7"] == shuffle_tasks(
        [one for one in tasks if one != "7"], "night 1"
    )
