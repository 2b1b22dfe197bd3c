"""2,000 simulated datasets of GTA's shape: intervals cover, tests hold their level, power is right.

The printed figures go to docs/measurements.md.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.records.statistics import Interval
from gta_bench.statistics.bootstrap import Ratio, clustered_difference, clustered_ratio
from gta_bench.statistics.components import variance_components
from gta_bench.statistics.paired import mcnemar, paired_permutation
from gta_bench.statistics.power import detectable_mean, detectable_paired, detectable_unpaired
from gta_bench.statistics.prediction import corrected_rate
from gta_bench.statistics.proportions import newcombe, two_proportions, wilson
from tests.statistics.simulation import (
    COMPONENTS,
    DESIGNS,
    ICC,
    coverage,
    crossed,
    judged_and_labelled,
    leaves_within_tasks,
    rejections,
    two_systems,
)

pytestmark = pytest.mark.measure
DATASETS = 2000
RESAMPLES = 1000


def exact_coverage(n: int, share: float) -> float:
    """What Wilson's interval covers, summed over all outcomes instead of simulated."""
    held = [k for k in range(n + 1) if wilson(k, n).low <= share <= wilson(k, n).high]
    return float(stats.binom.pmf(held, n, share).sum())


@pytest.mark.parametrize(("tasks", "share"), DESIGNS)
def test_wilsons_interval(tasks: int, share: float) -> None:
    """At 30 tasks and a share of 0.1 the exact coverage is 97.4 %: no simulation can bring less."""
    held = coverage(
        lambda random, seed: wilson(int(random.binomial(tasks, share)), tasks),
        share,
        datasets=DATASETS,
    )
    exact = exact_coverage(tasks, share)
    print(f"wilson {tasks} tasks, share {share}: {held:.2%}, exactly {exact:.2%}")
    assert abs(held - exact) < 0.02
    assert 0.93 <= exact <= (0.975 if (tasks, share) == (30, 0.1) else 0.97)


@pytest.mark.parametrize("icc", [0.1, ICC])
@pytest.mark.parametrize(("tasks", "share"), DESIGNS)
def test_the_clustered_interval_of_pooled_leaves(tasks: int, share: float, icc: float) -> None:
    methods = {"bootstrap-t": 0, "wilson-tasks": 0}

    def interval(random: np.random.Generator, seed: int) -> Interval:
        ratio = leaves_within_tasks(random, tasks=tasks, share=share, icc=icc)
        found = clustered_ratio(ratio, seed=seed, resamples=RESAMPLES)
        methods[found.method] += 1
        return found

    held = coverage(interval, share, datasets=DATASETS)
    print(f"leaves in {tasks} tasks, share {share}, icc {icc}: {held:.2%}, {methods}")
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize(("tasks", "share"), [(30, 0.03), (30, 0.05), (132, 0.01), (132, 0.03)])
def test_the_clustered_interval_of_rare_leaves(tasks: int, share: float) -> None:
    """Weak systems: in some datasets only one or two tasks have any passed leaf, or none."""
    held = coverage(
        lambda random, seed: clustered_ratio(
            leaves_within_tasks(random, tasks=tasks, share=share), seed=seed, resamples=RESAMPLES
        ),
        share,
        datasets=DATASETS,
    )
    print(f"rare leaves in {tasks} tasks, share {share}: {held:.2%}")
    assert 0.93 <= held <= 0.98


@pytest.mark.parametrize("tasks", [30, 132])
def test_the_clustered_interval_of_a_mean_score(tasks: int) -> None:
    """Root scores from 0 to 10, skewed as the published means are."""
    held = coverage(
        lambda random, seed: clustered_ratio(
            Ratio(10 * random.beta(0.9, 1.6, tasks), np.ones(tasks)),
            seed=seed,
            top=10,
            resamples=RESAMPLES,
        ),
        3.6,
        datasets=DATASETS,
    )
    print(f"root score, {tasks} tasks: {held:.2%}")
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize("tasks", [30, 132])
def test_the_clustered_interval_of_an_f1(tasks: int) -> None:
    """Twice the hits among the calls of both sides, where the number of calls varies too."""

    def interval(random: np.random.Generator, seed: int) -> Interval:
        gold = random.integers(1, 5, tasks)
        chance = random.beta(2, 2, tasks)
        hits = random.binomial(gold, chance)
        extra = random.poisson(0.5, tasks)
        ratio = Ratio(2.0 * hits, (gold + hits + extra).astype(float))
        return clustered_ratio(ratio, seed=seed, resamples=RESAMPLES)

    held = coverage(interval, 2 * 1.25 / (2.5 + 1.25 + 0.5), datasets=DATASETS)
    print(f"F1, {tasks} tasks: {held:.2%}")
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize("tasks", [30, 132])
def test_the_interval_of_a_paired_difference(tasks: int) -> None:
    def interval(random: np.random.Generator, seed: int) -> Interval:
        one, two = two_systems(random, tasks=tasks, shares=(0.5, 0.3), correlation=0.2)
        first, second = (Ratio(x.astype(float), np.ones(tasks)) for x in (one, two))
        return clustered_difference(first, second, seed=seed, resamples=RESAMPLES)

    held = coverage(interval, 0.2, datasets=DATASETS)
    print(f"paired difference, {tasks} tasks: {held:.2%}")
    assert 0.93 <= held <= 0.975


def test_newcombes_interval() -> None:
    held = coverage(
        lambda random, seed: newcombe(
            int(random.binomial(132, 0.25)), 132, int(random.binomial(132, 0.1)), 132
        ),
        0.15,
        datasets=DATASETS,
    )
    print(f"newcombe 132 tasks: {held:.2%}")
    assert 0.93 <= held <= 0.97


def permuted_leaves(random: np.random.Generator, seed: int) -> float:
    """Two systems that are equally good on tasks that are equally hard for both."""
    tasks = 60
    sizes = random.integers(3, 16, tasks)
    chances = random.beta(0.5, 1.2, tasks)
    first, second = (Ratio(random.binomial(sizes, chances).astype(float), sizes) for _ in "ab")
    return paired_permutation(first, second, seed=seed, permutations=999).p_value


def mcnemar_of(
    shares: tuple[float, float], tasks: int
) -> Callable[[np.random.Generator, int], float]:
    def p_value(random: np.random.Generator, seed: int) -> float:
        one, two = two_systems(random, tasks=tasks, shares=shares, correlation=0.5)
        return mcnemar(list(one), list(two)).p_value

    return p_value


def test_paired_tests_hold_their_level() -> None:
    permutation = rejections(permuted_leaves, datasets=DATASETS)
    exact = rejections(mcnemar_of((0.3, 0.3), 132), datasets=DATASETS)
    unpaired = rejections(
        lambda random, seed: (
            two_proportions(
                int(random.binomial(132, 0.1)), 132, int(random.binomial(132, 0.1)), 132
            ).p_value
        ),
        datasets=DATASETS,
    )
    print(f"false alarms: permutation {permutation:.2%}, mcnemar {exact:.2%}, two {unpaired:.2%}")
    assert 0.03 <= permutation <= 0.06
    assert exact <= 0.06
    assert unpaired <= 0.065


@pytest.mark.parametrize("tasks", [30, 132, 229])
def test_the_detectable_difference_is_found_in_80_percent(tasks: int) -> None:
    other, same = detectable_unpaired(tasks, 0.3), detectable_paired(tasks, 0.3, correlation=0.5)
    assert other is not None and same is not None
    mean = detectable_mean(tasks, 3.0)

    def unpaired(random: np.random.Generator, seed: int) -> float:
        passed = random.binomial(tasks, [0.3, 0.3 + other])
        return two_proportions(passed[0], tasks, passed[1], tasks).p_value

    def means(random: np.random.Generator, seed: int) -> float:
        differences = random.normal(mean, 3.0, tasks)
        return paired_permutation(
            Ratio(differences, np.ones(tasks)),
            Ratio(np.zeros(tasks), np.ones(tasks)),
            seed=seed,
            permutations=499,
        ).p_value

    found = {
        "two shares": rejections(unpaired, datasets=DATASETS),
        "mcnemar": rejections(mcnemar_of((0.3, 0.3 + same), tasks), datasets=DATASETS),
        "permutation of means": rejections(means, datasets=500),
    }
    print(f"{tasks} tasks, differences {other:.3f} {same:.3f} {mean:.3f}: found {found}")
    assert found["two shares"] == pytest.approx(0.8, abs=0.03)
    # The exact test is a little careful and gives away some points.
    assert 0.73 <= found["mcnemar"] <= 0.83
    assert found["permutation of means"] == pytest.approx(0.8, abs=0.06)


def test_variance_components_are_recovered() -> None:
    random = np.random.default_rng(20261115)
    found = [
        variance_components(
            crossed(random, harnesses=4, models=5, tasks=30, runs=2).tolist()
        ).variance
        for _ in range(DATASETS)
    ]
    for name, truth in COMPONENTS.items():
        values = [one[name] for one in found]
        error = np.std(values) / np.sqrt(DATASETS)
        print(f"{name}: true {truth}, mean of estimates {np.mean(values):.3f} ± {error:.3f}")
        assert np.mean(values) == pytest.approx(truth, abs=4 * error)


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("labelled", [30, 60])
def test_prediction_powered_interval(labelled: int, share: float, leaves: bool) -> None:
    held = coverage(
        lambda random, seed: corrected_rate(
            judged_and_labelled(random, tasks=132, labelled=labelled, share=share, leaves=leaves),
            seed=seed,
        ),
        share,
        datasets=DATASETS,
    )
    kind = "leaves" if leaves else "roots"
    print(f"prediction-powered, {kind}, {labelled} of 132 tasks, share {share}: {held:.2%}")
    # Of 30 tasks three pass: whole numbers so small do not come in finer steps. Intervals that are
    # nearer here cover too little elsewhere (docs/measurements.md).
    few = labelled == 30 and share == 0.1 and not leaves
    assert 0.93 <= held <= (0.985 if few else 0.97)
