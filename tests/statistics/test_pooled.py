import math

import numpy as np
import pytest
from scipy import optimize, stats  # type: ignore[import-untyped]

from gta_bench.statistics.pooled import (
    Ratio,
    compute_difference,
    compute_interval,
    effective_tasks,
    smallest_difference,
)
from tests.statistics.simulation import leaves_within_tasks


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


def yes_or_no(passed: int, n: int) -> Ratio:
    return Ratio([1.0] * passed + [0.0] * (n - passed), [1.0] * n)


def test_a_share_of_tasks_has_wilsons_interval_with_students_quantile() -> None:
    """7 of 30: Wilson's formula with t = 2.0452 (29 degrees of freedom) by hand."""
    found = compute_interval(yes_or_no(7, 30))
    t, p, n = 2.04523, 7 / 30, 30
    middle = (p + t * t / (2 * n)) / (1 + t * t / n)
    half = t * math.sqrt(p * (1 - p) / n + t * t / (4 * n * n)) / (1 + t * t / n)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-5)
    assert (found.method, found.n) == ("wilson", 30)


@pytest.mark.parametrize("passed", [0, 30])
def test_a_share_at_the_end_stays_there_and_is_not_certain(passed: int) -> None:
    found = compute_interval(yes_or_no(passed, 30))
    assert (found.low, found.high)[passed == 30] == passed / 30
    assert 0.1 < found.high - found.low < 0.15


def test_a_mean_of_many_tasks_has_the_interval_of_the_t_distribution(
    random: np.random.Generator,
) -> None:
    values = random.uniform(0, 1, 400)
    found = compute_interval(Ratio(values, np.ones(400)))
    expected = stats.t.interval(0.95, 399, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.001)


def test_leaves_that_hang_together_widen_the_interval(random: np.random.Generator) -> None:
    """The 1,156 leaves are not 1,156 independent things."""
    ratio = leaves_within_tasks(random, tasks=132, share=0.28)
    found = compute_interval(ratio)
    leaves = int(np.sum(ratio.denominators))
    naive = compute_interval(yes_or_no(int(np.sum(ratio.numerators)), leaves))
    assert 1.5 < (found.high - found.low) / (naive.high - naive.low) < 3
    assert found.estimate == pytest.approx(naive.estimate)
    assert found.n == 132


def test_a_score_from_0_to_10_stays_there() -> None:
    values = [10.0] * 50 + [9.0] * 10 + [5.0] * 10
    found = compute_interval(Ratio(values, [1.0] * 70), top=10)
    assert 8 < found.low < found.estimate < found.high <= 10
    wide = compute_interval(Ratio([10.0] * 30, [1.0] * 30), top=10)
    assert (wide.low, wide.high) == pytest.approx((8.776, 10), abs=0.001)


def test_a_score_above_its_top_is_refused() -> None:
    """F1 of the published formula exceeds 1; whoever asks must say how far it may go."""
    ratio = Ratio([2.2] * 40, [2.0] * 40)
    with pytest.raises(ValueError, match=r"1\.1 is not between 0 and 1"):
        compute_interval(ratio)
    assert compute_interval(ratio, top=2).estimate == pytest.approx(1.1)


def test_an_amount_without_limit_has_students_interval() -> None:
    values = [10.0, 20.0, 60.0]
    found = compute_interval(Ratio(values, [1.0] * 3), top=None)
    assert (found.low, found.high) == pytest.approx(
        stats.t.interval(0.95, 2, 30, stats.sem(values))
    )
    assert found.method == "student"


def test_a_ratio_whose_denominator_many_tasks_lack_is_pooled() -> None:
    """A category of tools that only 20 of 229 tasks need."""
    hits = [1.0] * 10 + [2.0] * 10 + [0.0] * 209
    found = compute_interval(Ratio(hits, [2.0] * 20 + [0.0] * 209))
    assert found.estimate == 0.75
    assert 0.6 < found.low < 0.68
    assert 0.82 < found.high < 0.9


def outcomes(*, both: int, first: int, second: int, neither: int) -> tuple[Ratio, Ratio]:
    n = both + first + second + neither
    one = [1.0] * (both + first) + [0.0] * (second + neither)
    two = [1.0] * both + [0.0] * first + [1.0] * second + [0.0] * neither
    return Ratio(one, [1.0] * n), Ratio(two, [1.0] * n)


@pytest.mark.parametrize(
    ("both", "first", "second", "neither"), [(10, 9, 3, 8), (0, 4, 0, 16), (40, 12, 10, 70)]
)
def test_a_difference_of_passed_tasks_has_tangos_interval(
    both: int, first: int, second: int, neither: int
) -> None:
    """At its ends the score statistic, its nuisance share found by search, is the quantile."""
    n = both + first + second + neither
    found = compute_difference(*outcomes(both=both, first=first, second=second, neither=neither))
    quantile = stats.t.ppf(0.975, n - 1)

    def statistic(gap: float) -> float:
        def unlikely(lost: float) -> float:
            shares = [lost + gap, lost, 1 - 2 * lost - gap]
            counts = [first, second, both + neither]
            return -sum(
                count * math.log(max(share, 1e-300))
                for count, share in zip(counts, shares, strict=True)
            )

        ends = max(0.0, -gap) + 1e-12, (1 - gap) / 2 - 1e-12
        lost = optimize.minimize_scalar(
            unlikely, bounds=ends, method="bounded", options={"xatol": 1e-12}
        ).x
        error = math.sqrt((2 * lost + gap * (1 - gap)) / n)
        return float(((first - second) / n - gap) / error)

    assert statistic(found.interval.low) == pytest.approx(quantile, rel=1e-4)
    assert statistic(found.interval.high) == pytest.approx(-quantile, rel=1e-4)
    # At 0 it is McNemar's.
    mcnemar = (first - second) / math.sqrt(first + second)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(mcnemar), n - 1))


def test_two_systems_that_never_differ_may_still_differ_a_little() -> None:
    found = compute_difference(yes_or_no(5, 30), yes_or_no(5, 30))
    square = stats.t.ppf(0.975, 29) ** 2
    assert found.p_value == 1
    assert found.interval.high == pytest.approx(square / (30 + square), abs=1e-6)
    assert found.interval.low == pytest.approx(-found.interval.high)


def test_the_ends_of_a_difference_are_where_its_test_says_5_percent(
    random: np.random.Generator,
) -> None:
    """The interval of a shifted system ends at 0 where the test is on the edge."""
    first, second = (leaves_within_tasks(random, tasks=30, share=share) for share in (0.3, 0.2))
    found = compute_difference(first, Ratio(second.numerators, first.denominators))
    strict = compute_difference(
        first, Ratio(second.numerators, first.denominators), level=1 - found.p_value
    )
    nearest = min(abs(strict.interval.low), abs(strict.interval.high))
    assert nearest == pytest.approx(0, abs=1e-6)


def test_a_difference_on_the_same_tasks_is_sharper_than_on_others(
    random: np.random.Generator,
) -> None:
    first = leaves_within_tasks(random, tasks=132, share=0.4)
    worse = np.maximum(0, np.asarray(first.numerators) - random.integers(0, 2, 132))
    second = Ratio(worse, first.denominators)
    found, alone = compute_difference(first, second).interval, compute_interval(first)
    assert 0 < found.low < found.estimate < found.high
    assert found.high - found.low < (alone.high - alone.low) / 3
    turned = compute_difference(second, first).interval
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_right_everywhere_against_wrong_everywhere() -> None:
    right, wrong = yes_or_no(40, 40), yes_or_no(0, 40)
    found = compute_difference(right, wrong)
    assert 0.8 < found.interval.low < 1.0 == found.interval.high
    assert found.p_value < 1e-6


def test_few_common_tasks_say_little_and_crash_nothing() -> None:
    one = compute_difference(yes_or_no(1, 1), yes_or_no(0, 1))
    assert (one.p_value, one.interval.low, one.interval.high) == (1.0, -1.0, 1.0)
    two = compute_difference(yes_or_no(2, 2), yes_or_no(0, 2))
    assert two.p_value > 0.3
    assert two.interval.low < 0 < two.interval.high == 1.0
    assert compute_interval(yes_or_no(1, 1)).low == 0
    half = compute_difference(Ratio([5.0], [9.0]), Ratio([3.0], [9.0]))
    assert (half.p_value, half.detectable) == (1.0, 1.0)


def test_a_system_that_made_no_call_in_some_tasks_is_compared_on_the_rest() -> None:
    found = compute_difference(
        Ratio([5.0, 0, 0, 0], [5.0, 0, 0, 0]), Ratio([0.0, 2, 1, 0], [4.0, 3, 2, 3])
    )
    assert found.interval.estimate == 0.75
    assert found.interval.low < 0
    assert found.p_value > 0.05


def test_unequal_weights_are_fewer_tasks() -> None:
    assert effective_tasks([1.0] * 20) == pytest.approx(20)
    assert effective_tasks([10.0] + [1.0] * 9) == pytest.approx(19**2 / 109)


def test_what_can_be_shown_shrinks_with_the_number_of_tasks() -> None:
    few = compute_difference(yes_or_no(5, 30), yes_or_no(5, 30)).detectable
    many = compute_difference(yes_or_no(22, 132), yes_or_no(22, 132)).detectable
    assert 0.15 < few < 0.3
    assert 0.03 < many < 0.08


def test_amounts_differ_as_a_paired_t_test_says() -> None:
    first, second = [10.0, 20.0, 60.0, 31.0], [11.0, 25.0, 61.0, 40.0]
    found = compute_difference(Ratio(first, [1.0] * 4), Ratio(second, [1.0] * 4), top=None)
    assert found.p_value == pytest.approx(stats.ttest_rel(first, second).pvalue)
    same = compute_difference(Ratio(first, [1.0] * 4), Ratio(first, [1.0] * 4), top=None)
    assert (same.p_value, same.interval.low, same.interval.high) == (1.0, 0.0, 0.0)
    assert compute_difference(Ratio([1.0], [1.0]), Ratio([2.0], [1.0]), top=None).p_value == 1


def test_one_task_with_thousands_of_calls_proves_nothing() -> None:
    sizes = [np.full(30, 10.0), np.full(30, 10.0)]
    sizes[0][0], sizes[1][0] = 5000, 1
    done = [size / 2 for size in sizes]
    done[0][0], done[1][0] = 5000, 1
    found = compute_difference(*(Ratio(one, size) for one, size in zip(done, sizes, strict=True)))
    assert found.p_value > 0.5
    assert found.effective == pytest.approx(1.12, abs=0.01)


@pytest.mark.parametrize("tasks", [7, 8, 10, 12, 20, 29])
def test_what_few_tasks_could_show_they_do_show(tasks: int) -> None:
    """By drawing, where the function itself sums over all outcomes."""
    gap = smallest_difference(0.1, tasks, tasks)
    random = np.random.default_rng(tasks)
    found = 0
    for _ in range(400):
        apart = random.random(tasks) < max(gap, 0.1)
        won = random.random(tasks) < (1 + gap / max(gap, 0.1)) / 2
        first, second = (apart & won).astype(float), (apart & ~won).astype(float)
        ones = np.ones(tasks)
        found += compute_difference(Ratio(first, ones), Ratio(second, ones)).p_value < 0.05
    assert 0.74 <= found / 400 <= 0.94
    assert smallest_difference(0.1, 6, 6) == 1.0
