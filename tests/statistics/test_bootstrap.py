import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.statistics import bootstrap
from gta_bench.statistics.bootstrap import Ratio, clustered_difference, clustered_ratio
from gta_bench.statistics.proportions import newcombe, wilson
from tests.statistics.simulation import leaves_within_tasks


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


def test_a_mean_of_many_tasks_has_the_interval_of_the_t_distribution(
    random: np.random.Generator,
) -> None:
    """With denominators of 1 and well-behaved values the two agree to a few percent."""
    values = random.uniform(0, 1, 400)
    interval = clustered_ratio(Ratio(values, np.ones(400)), seed=1, resamples=4000)
    expected = stats.t.interval(0.95, 399, values.mean(), stats.sem(values))
    assert (interval.low, interval.high) == pytest.approx(expected, abs=0.003)
    assert interval.method == "bootstrap-t"


def test_leaves_that_hang_together_widen_the_interval(random: np.random.Generator) -> None:
    """The 1,156 leaves are not 1,156 independent things."""
    ratio = leaves_within_tasks(random, tasks=132, share=0.28)
    interval = clustered_ratio(ratio, seed=1)
    naive = wilson(float(np.sum(ratio.numerators)), int(np.sum(ratio.denominators)))
    assert 1.5 < (interval.high - interval.low) / (naive.high - naive.low) < 3
    assert interval.estimate == pytest.approx(naive.estimate)
    assert interval.n == 132


def test_the_same_seed_gives_the_same_interval_and_another_a_near_one(
    random: np.random.Generator,
) -> None:
    ratio = leaves_within_tasks(random, tasks=30, share=0.4)
    one, again, other = (clustered_ratio(ratio, seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    assert other.low == pytest.approx(one.low, abs=0.03)


def test_the_size_of_a_batch_changes_nothing(
    random: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratio = leaves_within_tasks(random, tasks=30, share=0.4)
    whole = clustered_ratio(ratio, seed=1)
    monkeypatch.setattr(bootstrap, "BATCH", 30 * 7)
    assert clustered_ratio(ratio, seed=1) == whole


@pytest.mark.parametrize("passed", [0, 2, 28, 30])
def test_with_too_few_tasks_on_one_side_wilsons_interval_stands_in(passed: int) -> None:
    """A bootstrap of no success at all would say that the interval is from 0 to 0."""
    numerators = [9.0] * passed + [0.0] * (30 - passed)
    interval = clustered_ratio(Ratio(numerators, [9.0] * 30), seed=1)
    expected = wilson(passed, 30)
    assert interval.method == "wilson-tasks"
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_a_score_from_0_to_10_stays_there() -> None:
    values = [10.0] * 50 + [9.0] * 10 + [5.0] * 10
    interval = clustered_ratio(Ratio(values, [1.0] * 70), seed=1, top=10)
    assert 8 < interval.low < interval.estimate < interval.high <= 10
    wide = clustered_ratio(Ratio([10.0] * 30, [1.0] * 30), seed=1, top=10)
    assert (wide.low, wide.high) == pytest.approx((8.865, 10), abs=0.001)


def test_a_score_above_its_top_is_refused() -> None:
    """F1 of the published formula exceeds 1; whoever asks must say how far it may go."""
    ratio = Ratio([2.2] * 40, [2.0] * 40)
    with pytest.raises(ValueError, match=r"1\.1 does not lie between 0 and 1"):
        clustered_ratio(ratio, seed=1)
    assert clustered_ratio(ratio, seed=1, top=2).estimate == pytest.approx(1.1)


def test_a_difference_on_the_same_tasks_is_sharper_than_on_others(
    random: np.random.Generator,
) -> None:
    first = leaves_within_tasks(random, tasks=132, share=0.4)
    worse = np.maximum(0, np.asarray(first.numerators) - random.integers(0, 2, 132))
    second = Ratio(worse, first.denominators)
    interval = clustered_difference(first, second, seed=1)
    alone = clustered_ratio(first, seed=1)
    assert 0 < interval.low < interval.estimate < interval.high
    assert interval.high - interval.low < (alone.high - alone.low) / 3
    turned = clustered_difference(second, first, seed=1)
    assert (turned.low, turned.high) == pytest.approx((-interval.high, -interval.low))


def test_two_that_differ_in_few_tasks_get_newcombes_interval() -> None:
    first = Ratio([1.0] * 10 + [0.0] * 20, [1.0] * 30)
    second = Ratio([1.0] * 8 + [0.0] * 22, [1.0] * 30)
    interval = clustered_difference(first, second, seed=1)
    expected = newcombe(10, 30, 8, 30)
    assert interval.method == "newcombe-tasks"
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_a_ratio_whose_denominator_many_tasks_lack_is_pooled() -> None:
    """A category of tools that only 20 of 229 tasks need."""
    needed = [2.0] * 20 + [0.0] * 209
    hits = [1.0] * 10 + [2.0] * 10 + [0.0] * 209
    interval = clustered_ratio(Ratio(hits, needed), seed=1)
    assert interval.estimate == 0.75
    assert 0.6 < interval.low < 0.68
    assert 0.82 < interval.high < 0.9


def test_tasks_that_are_all_alike_have_the_wide_interval() -> None:
    """A system that is right everywhere beside one that is wrong everywhere ended in an error."""
    right, wrong, half = Ratio([1.0] * 40, [1.0] * 40), Ratio([0.0] * 40, [1.0] * 40), [0.5] * 40
    found = clustered_difference(right, wrong, seed=1)
    assert (found.estimate, found.method) == (1.0, "newcombe-tasks")
    assert 0.8 < found.low < 1.0 == found.high
    assert clustered_ratio(Ratio(half, [1.0] * 40), seed=1).method == "wilson-tasks"


def test_one_task_unlike_all_others_gives_no_interval_that_ends_at_the_estimate() -> None:
    """Resamples without it have no spread, and were left out on one side only."""
    first, second = Ratio([1.0] * 9 + [0.8], [1.0] * 10), Ratio([0.0] * 10, [1.0] * 10)
    found = clustered_difference(first, second, seed=0)
    assert found.method == "newcombe-tasks"
    assert found.low < 0.9 < found.estimate < found.high
