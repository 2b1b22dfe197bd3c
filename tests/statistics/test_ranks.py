from itertools import combinations

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.statistics.proportions import holm, rank_systems, two_proportions


def test_holm_gives_the_textbooks_adjusted_values() -> None:
    """The worked example of Holm 1979 as R's p.adjust prints it."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()


def test_holm_is_never_below_the_false_discovery_rate() -> None:
    values = np.random.default_rng(1).random(40) ** 3
    assert np.all(np.array(holm(list(values))) >= stats.false_discovery_control(values) - 1e-12)


ROOT_SR = [19, 15, 13, 12, 14, 14, 12, 11, 1, 1, 1, 0, 0]


def published() -> dict[tuple[int, int], float]:
    return {
        (one, two): two_proportions(ROOT_SR[one], 132, ROOT_SR[two], 132).p_value
        for one, two in combinations(range(13), 2)
    }


def test_the_published_top_eight_are_one_group() -> None:
    result = rank_systems(ROOT_SR, published())
    assert [standing.group for standing in result] == [1] * 8 + [2] * 5
    assert {standing.rank.low for standing in result[:8]} == {1}
    assert all(standing.rank.high >= 8 for standing in result[:8])
    assert (result[0].rank.rank, result[0].rank.high) == (1, 8)
    assert [standing.rank.rank for standing in result[4:6]] == [3, 3]


def test_without_any_difference_all_are_one_group() -> None:
    result = rank_systems([3, 2, 1], {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0})
    assert [(one.group, one.rank.low, one.rank.high) for one in result] == [(1, 1, 3)] * 3


def test_with_every_difference_each_is_its_own_group() -> None:
    result = rank_systems([1, 3, 2], {(0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0})
    assert [(one.group, one.rank.low, one.rank.high) for one in result] == [
        (3, 3, 3),
        (1, 1, 1),
        (2, 2, 2),
    ]


@pytest.mark.parametrize("count", [0, 1])
def test_nobody_and_one_alone_can_be_ranked(count: int) -> None:
    assert [one.group for one in rank_systems([5.0] * count, {})] == [1] * count
