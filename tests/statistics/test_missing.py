import numpy as np
import pytest

from gta_bench.statistics.missing import Side, find_bounds, find_envelope
from gta_bench.statistics.pooled import Ratio, compute_difference


def worst(side: Side) -> Ratio:
    return Ratio(side.values, side.whole)


def best(side: Side) -> Ratio:
    return Ratio(side.values + side.missing, side.whole)


def side(outcomes: str, *, size: float = 1.0) -> Side:
    """`+` passed, `-` failed, `?` missing."""
    return Side(
        np.array([size * (one == "+") for one in outcomes]),
        np.array([size * (one != "?") for one in outcomes]),
        np.array([size * (one == "?") for one in outcomes]),
    )


def test_leaves_that_were_not_scored_bound_a_rate() -> None:
    """53 of 166 scored leaves pass, 63 have no score: Leaf SR of the 20 stored predictions."""
    found = find_bounds(Side(np.array([53.0]), np.array([166.0]), np.array([63.0])))
    assert (found.low, found.high) == pytest.approx((0.2314, 0.5066), abs=1e-4)
    assert found.missing == 1


def test_the_worst_and_best_case_of_a_difference() -> None:
    first, second = side("++++--??"), side("+++---+-")
    seen = [place for place in range(8) if first.seen[place]]
    observed = compute_difference(
        Ratio(first.values[seen], first.seen[seen]), Ratio(second.values[seen], second.seen[seen])
    )
    found = find_envelope(first, second, observed)
    assert (found.missing, found.low, found.high) == (2, 0.0, 0.25)
    assert found.p_value == 1.0
    # 4 of 6 and 4 of 8: without the two, the lead would be 5.33 to 4 tasks; two losses take 1.33.
    assert found.tipping == 2


def test_a_lead_that_the_missing_tasks_cannot_turn_stays() -> None:
    first, second = side("+" * 40 + "-" * 8 + "??"), side("-" * 45 + "+" * 5)
    observed = compute_difference(
        Ratio(first.values[:48], first.seen[:48]), Ratio(second.values[:48], second.seen[:48])
    )
    found = find_envelope(first, second, observed)
    assert observed.p_value < found.p_value < 0.001
    assert found.tipping is None
    turned = find_envelope(second, first, compute_difference(worst(second), worst(first)))
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert turned.tipping is None


def test_dropping_failed_tasks_never_puts_a_system_ahead() -> None:
    """1,000 cheats: up to a fifth of the tasks go missing, those first that it failed and the
    other passed. Without the envelope every second one would succeed."""
    random = np.random.default_rng(5)
    ahead = fooled = 0
    for _ in range(1000):
        tasks = int(random.choice([30, 60, 132]))
        chance = random.beta(0.6, 0.9, tasks)
        first, second = ((random.random(tasks) < chance).astype(float) for _ in "ab")
        order = np.argsort(first - second + random.random(tasks) / 10)
        dropped = np.zeros(tasks)
        dropped[order[: int(random.integers(1, tasks // 5 + 1))]] = 1
        cheat = Side(first * (1 - dropped), 1 - dropped, dropped)
        other = Side(second, np.ones(tasks), np.zeros(tasks))
        kept = dropped == 0
        observed = compute_difference(
            Ratio(first[kept], np.ones(kept.sum())), Ratio(second[kept], np.ones(kept.sum()))
        )
        whole = compute_difference(Ratio(first, np.ones(tasks)), Ratio(second, np.ones(tasks)))
        found = find_envelope(cheat, other, observed)
        fooled += observed.p_value < 0.05 and observed.interval.estimate > 0
        # Ahead with all its tasks too, by chance, it is no cheat's doing.
        true = whole.p_value < 0.05 and whole.interval.estimate > 0
        ahead += found.p_value < 0.05 and found.low > 0 and not true
    assert fooled > 300
    assert ahead == 0


def test_a_lead_that_is_lost_halfway_is_none() -> None:
    """If one of three large tasks turns out well, the tasks vary more than if all or none do."""
    seen = np.array([3.0, 6, 7, 7, 6, 3, 7, 6, 7, 7, 6, 7, 5, 7, 7])
    values = np.array([2.0, 4, 2, 5, 3, 1, 6, 2, 4, 2, 2, 2, 4, 3, 3])
    first = Side(values, seen, np.array([0.0] * 12 + [14.0] * 3))
    others = np.array([2.0, 1, 1, 2, 0, 3, 2, 1, 3, 2, 1, 3, 4, 2, 1])
    second = Side(others, first.whole, np.zeros(15))
    observed = compute_difference(Ratio(values, seen), worst(second))
    ends = [compute_difference(one, worst(second)) for one in (worst(first), best(first))]
    assert max(one.p_value for one in (observed, *ends)) < 0.05
    assert find_envelope(first, second, observed).p_value > 0.05
