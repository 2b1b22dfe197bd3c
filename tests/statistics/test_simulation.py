"""The short form of tests/measure/test_statistics_grid.py: fewer cells, wider bounds."""

import numpy as np
import pytest

from gta_bench.records.statistics import Interval
from gta_bench.statistics.pooled import Ratio, compute_difference, compute_interval
from tests.statistics.simulation import Cell, coverage, leaves_within_tasks, two_runs

# Where the bootstrap that was here before covered 86 to 90 %, and one cell of each kind.
CELLS = [
    Cell("passed", 30, (0.1, 0.1), 0.4),
    Cell("leaves", 30, (0.05, 0.05), 0.4),
    Cell("leaves", 132, (0.05, 0.1), 0.4),
    Cell("calls", 60, (0.25, 0.4), 0.2),
]


@pytest.mark.parametrize("cell", CELLS)
def test_intervals_cover_and_agree_with_their_test(cell: Cell) -> None:
    random = np.random.default_rng(20261116)
    runs = [two_runs(random, cell) for _ in range(300)]
    alone = [compute_interval(first) for first, _ in runs]
    both = [compute_difference(first, second) for first, second in runs]
    truth = cell.shares[0] - cell.shares[1]
    assert np.mean([one.low <= cell.shares[0] <= one.high for one in alone]) >= 0.90
    assert np.mean([one.interval.low <= truth <= one.interval.high for one in both]) >= 0.90
    for one in both:
        assert (one.p_value < 0.05) == (not one.interval.low <= 0 <= one.interval.high)


def test_leaves_taken_as_independent_would_not_cover() -> None:
    """What the clustering is for: the naive interval misses the truth every third time."""

    def naive(random: np.random.Generator, _: int) -> Interval:
        ratio = leaves_within_tasks(random, tasks=132, share=0.25)
        passed, leaves = (int(np.sum(side)) for side in ratio)
        return compute_interval(Ratio([1.0] * passed + [0.0] * (leaves - passed), [1.0] * leaves))

    assert coverage(naive, 0.25, datasets=300) < 0.75
