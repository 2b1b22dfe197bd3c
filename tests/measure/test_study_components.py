"""How often intervals of variance components contain the truth, for docs/measurements.md."""

import numpy as np
import pytest

from gta_bench.statistics.components import estimate_components
from tests.statistics.study_simulation import Design, draw, observe, true_components

pytestmark = pytest.mark.measure
ROUNDS = 1000
MEANS = ((-0.5, -1.0), (0.5, 0.3), (0.0, 0.2))
DESIGNS = {
    "normal": Design("normal", ((0.4, 0.3), (0.6, 0.5), (0.5, 0.7)), 0.3, 0.15, 0.1, 0.12, 0.2),
    "passes": Design("passes", MEANS, 1.5, 0.8, 0.5, 0.5),
    "rare": Design("passes", ((-2.5, -3.0), (-2.0, -2.2), (-2.8, -2.0)), 1.5, 0.5, 0.3, 0.5),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_of_components_contain_the_truth(name: str) -> None:
    design, random = DESIGNS[name], np.random.default_rng(7)
    truth = true_components(design, random)
    for tasks, runs in ((12, 2), (30, 2), (30, 3), (100, 2)):
        covered = dict.fromkeys(truth, 0)
        for _ in range(ROUNDS):
            scores = observe(design, draw(design, tasks, random), runs, random)
            for part in estimate_components(scores):
                inside = part.variance.low <= truth[part.source] <= part.variance.high
                covered[part.source] += inside
        shares = {source: 100 * count / ROUNDS for source, count in covered.items()}
        line = "  ".join(f"{source} {share:.1f}" for source, share in shares.items())
        print(f"{name:7} {tasks:4} {runs}  {line}")
        assert min(shares.values()) >= 80, (name, tasks, runs, shares)
