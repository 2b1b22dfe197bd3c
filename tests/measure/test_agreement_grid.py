"""What the intervals of kappa and AC1 cover, over a grid of judges; about five minutes."""

from itertools import product

import numpy as np
import pytest

from gta_bench.statistics.agreement import compute_ac1, compute_kappa
from tests.statistics.simulation import LEAVES

pytestmark = pytest.mark.measure

DRAWS = 500
TASKS = (20, 30, 60, 132)
CELLS = tuple(product((0.1, 0.3, 0.5), (0.8, 0.95, 0.99), (0.0, 0.2)))


def chances(
    rng: np.random.Generator, share: float, correlation: float, n: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The share of each task; those of a task hang together as much as is said."""
    if not correlation:
        return np.full(n, share)
    size = (1 - correlation) / correlation
    return rng.beta(share * size, (1 - share) * size, n)


def covered(tasks: int, share: float, right: float, correlation: float) -> tuple[float, float]:
    """How often the intervals of kappa and of AC1 have the true value in them."""
    rng = np.random.default_rng(5)
    seen = share * right + (1 - share) * (1 - right)
    mean = (share + seen) / 2
    by_chance = share * (1 - seen) + seen * (1 - share), 1 - 2 * mean * (1 - mean)
    held = [0, 0]
    for _ in range(DRAWS):
        sizes = rng.choice(LEAVES, tasks)
        names = [str(name) for name in np.repeat(np.arange(tasks), sizes)]
        passed = np.repeat(chances(rng, share, correlation, tasks), sizes)
        wrong = np.repeat(chances(rng, 1 - right, correlation, tasks), sizes)
        people = rng.random(len(names)) < passed
        judge = people ^ (rng.random(len(names)) < wrong)
        table = list(zip(map(float, people), map(float, judge), strict=True))
        both = compute_kappa(table, names, top=1), compute_ac1(table, names)
        for place, found in enumerate(both):
            true = 1 - (1 - right) / by_chance[place]
            held[place] += found is None or found.low <= true <= found.high
    return held[0] / DRAWS, held[1] / DRAWS


@pytest.mark.parametrize("tasks", TASKS)
def test_intervals_of_agreement_hold_the_truth(tasks: int) -> None:
    found = np.array([covered(tasks, *cell) for cell in CELLS])
    for name, own in zip(("kappa", "AC1"), found.T, strict=True):
        print(f"{tasks} tasks, {name}: {own.min():.3f}, {own.mean():.3f}, {own.max():.3f}")
    assert found.min() > 0.9
    assert found.mean() > 0.94
