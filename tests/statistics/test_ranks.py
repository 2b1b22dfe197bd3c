from itertools import combinations

import numpy as np
import pytest

from gta_bench.statistics.bootstrap import Ratio
from gta_bench.statistics.proportions import two_proportions
from gta_bench.statistics.ranks import rank_intervals, standings


def test_far_systems_have_certain_ranks_and_near_ones_share_theirs() -> None:
    random = np.random.default_rng(3)
    shares = [0.9, 0.5, 0.5, 0.05]
    systems = [Ratio((random.random(132) < share).astype(float), np.ones(132)) for share in shares]
    ranks = rank_intervals(systems, seed=1)
    assert (ranks[0].rank, ranks[0].low, ranks[0].high) == (1, 1, 1)
    assert (ranks[3].rank, ranks[3].low, ranks[3].high) == (4, 4, 4)
    assert {(rank.low, rank.high) for rank in ranks[1:3]} == {(2, 3)}


def test_equal_systems_share_the_best_rank_and_may_have_the_worst() -> None:
    same = Ratio([1.0, 0.0] * 20, [1.0] * 40)
    assert [(rank.rank, rank.low, rank.high) for rank in rank_intervals([same, same], seed=1)] == [
        (1, 1, 2),
        (1, 1, 2),
    ]


ROOT_SR = [19, 15, 13, 12, 14, 14, 12, 11, 1, 1, 1, 0, 0]


def published() -> dict[tuple[int, int], float]:
    return {
        (one, two): two_proportions(ROOT_SR[one], 132, ROOT_SR[two], 132).p_value
        for one, two in combinations(range(13), 2)
    }


def test_the_published_top_eight_are_one_group() -> None:
    result = standings(ROOT_SR, published())
    assert [standing.group for standing in result] == [1] * 8 + [2] * 5
    assert {standing.rank.low for standing in result[:8]} == {1}
    assert all(standing.rank.high >= 8 for standing in result[:8])
    assert (result[0].rank.rank, result[0].rank.high) == (1, 8)
    assert [standing.rank.rank for standing in result[4:6]] == [3, 3]


def test_without_any_difference_all_are_one_group() -> None:
    result = standings([3, 2, 1], {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0})
    assert [(one.group, one.rank.low, one.rank.high) for one in result] == [(1, 1, 3)] * 3


def test_with_every_difference_each_is_its_own_group() -> None:
    result = standings([1, 3, 2], {(0, 1): 0.0, (0, 2): 0.0, (1, 2): 0.0})
    assert [(one.group, one.rank.low, one.rank.high) for one in result] == [
        (3, 3, 3),
        (1, 1, 1),
        (2, 2, 2),
    ]


@pytest.mark.parametrize("count", [0, 1])
def test_nobody_and_one_alone_can_be_ranked(count: int) -> None:
    assert [one.group for one in standings([5.0] * count, {})] == [1] * count
