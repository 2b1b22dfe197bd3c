"""The short form of tests/measure/test_simulations.py: bounds as wide as fewer datasets need."""

import numpy as np
import pytest

from gta_bench.records.statistics import Interval
from gta_bench.statistics.bootstrap import Ratio, clustered_difference, clustered_ratio
from gta_bench.statistics.components import variance_components
from gta_bench.statistics.paired import mcnemar, paired_permutation
from gta_bench.statistics.power import detectable_paired
from gta_bench.statistics.proportions import wilson
from tests.statistics.simulation import (
    COMPONENTS,
    DESIGNS,
    coverage,
    crossed,
    leaves_within_tasks,
    rejections,
    two_systems,
)


@pytest.mark.parametrize(("tasks", "share"), DESIGNS)
def test_wilsons_interval_covers(tasks: int, share: float) -> None:
    held = coverage(
        lambda random, seed: wilson(int(random.binomial(tasks, share)), tasks), share, datasets=2000
    )
    assert 0.93 <= held <= 0.985


@pytest.mark.parametrize(("tasks", "share"), [(30, 0.25), (132, 0.1)])
def test_the_clustered_interval_covers(tasks: int, share: float) -> None:
    held = coverage(
        lambda random, seed: clustered_ratio(
            leaves_within_tasks(random, tasks=tasks, share=share), seed=seed, resamples=400
        ),
        share,
        datasets=200,
    )
    assert 0.91 <= held <= 0.99


def test_leaves_taken_as_independent_would_not_cover() -> None:
    """What the clustering is for: the naive interval misses the truth every third time."""

    def naive(random: np.random.Generator, seed: int) -> Interval:
        ratio = leaves_within_tasks(random, tasks=132, share=0.25)
        return wilson(float(np.sum(ratio.numerators)), int(np.sum(ratio.denominators)))

    assert coverage(naive, 0.25, datasets=500) < 0.75


def test_the_interval_of_a_difference_covers() -> None:
    def interval(random: np.random.Generator, seed: int) -> Interval:
        one, two = two_systems(random, tasks=132, shares=(0.3, 0.2), correlation=0.4)
        first, second = (Ratio(x.astype(float), np.ones(132)) for x in (one, two))
        return clustered_difference(first, second, seed=seed, resamples=400)

    assert 0.91 <= coverage(interval, 0.1, datasets=200) <= 0.99


def test_paired_tests_hold_their_level() -> None:
    def both(random: np.random.Generator, seed: int) -> float:
        one, two = two_systems(random, tasks=60, shares=(0.3, 0.3), correlation=0.4)
        ratios = (Ratio(values.astype(float), np.ones(60)) for values in (one, two))
        exact = mcnemar(list(one), list(two)).p_value
        sampled = paired_permutation(*ratios, seed=seed, permutations=499).p_value
        assert sampled == pytest.approx(exact, abs=0.12)
        return min(exact, sampled)

    assert rejections(both, datasets=250) <= 0.085


def test_the_detectable_difference_is_found_as_often_as_promised() -> None:
    gain = detectable_paired(229, 0.3, correlation=0.4)
    assert gain is not None

    def p_value(random: np.random.Generator, seed: int) -> float:
        one, two = two_systems(random, tasks=229, shares=(0.3, 0.3 + gain), correlation=0.4)
        return mcnemar(list(one), list(two)).p_value

    assert 0.72 <= rejections(p_value, datasets=600) <= 0.84


def test_variance_components_are_recovered() -> None:
    random = np.random.default_rng(20261115)
    found = [
        variance_components(
            crossed(random, harnesses=4, models=5, tasks=30, runs=2).tolist()
        ).variance
        for _ in range(150)
    ]
    for name, truth in COMPONENTS.items():
        values = [one[name] for one in found]
        assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / np.sqrt(150))
