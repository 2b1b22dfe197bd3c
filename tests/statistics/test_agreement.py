"""Agreement against the values that textbooks print."""

import numpy as np
import pytest

from gta_bench.records.agreement import Agreement
from gta_bench.records.statistics import Interval
from gta_bench.statistics.agreement import (
    Ratings,
    compute_ac1,
    compute_alpha,
    compute_icc,
    compute_kappa,
    measure_agreement,
)

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), C: four observers, 12 units,
# with gaps; he finds 0.743 for names and 0.849 for intervals.
OBSERVERS: tuple[tuple[int | None, ...], ...] = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
UNITS = tuple(zip(*OBSERVERS, strict=True))
# Shrout and Fleiss (1979), table 2: six targets, four judges; ICC(2,1) = .29.
TARGETS = ((9, 2, 5, 8), (6, 1, 3, 2), (8, 4, 6, 8), (7, 1, 2, 6), (10, 5, 6, 9), (6, 2, 4, 7))
# The anxiety ratings of the R package irr: kappa2(…, "squared") is 0.297 for the first two raters.
FIRST = (3, 3, 3, 4, 5, 5, 2, 3, 5, 2, 2, 6, 1, 5, 2, 2, 1, 2, 4, 3)
SECOND = (3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4)


# Gwet's R package irrCAC: gwet.ac1.table of cont3x3abstractors is 0.8493305, (0.764,0.935);
# gwet.ac1.raw of cac.raw4raters, which are Krippendorff's observers, 0.77544.
ABSTRACTORS = ((1, 1),) * 13 + ((2, 2),) * 20 + ((2, 3),) * 7 + ((3, 2),) * 4 + ((3, 3),) * 56


def apart(table: Ratings) -> list[str]:
    """Every row as a task of its own."""
    return [str(number) for number in range(len(table))]


def estimate(found: Interval | None) -> float:
    assert found is not None
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    return found.estimate


def test_ac1_is_gwets() -> None:
    two = compute_ac1(ABSTRACTORS, apart(ABSTRACTORS), categories=(1, 2, 3))
    assert estimate(two) == pytest.approx(0.8493305, abs=5e-8)
    four = compute_ac1(UNITS, apart(UNITS), categories=(1, 2, 3, 4, 5))
    assert estimate(four) == pytest.approx(0.77544, abs=5e-6)


def test_ac1_holds_where_kappa_breaks() -> None:
    """Raters agree on 94 % of 125 items, and kappa is below 0, since nearly all items pass."""
    table = [(1.0, 1.0)] * 118 + [(1.0, 0.0)] * 5 + [(0.0, 1.0)] * 2
    assert estimate(compute_kappa(table, apart(table), top=1)) == pytest.approx(-0.0234, abs=5e-5)
    assert estimate(compute_ac1(table, apart(table))) == pytest.approx(0.9408, abs=5e-5)


def test_the_interval_is_gwets_where_every_item_is_a_task() -> None:
    found = compute_ac1(ABSTRACTORS, apart(ABSTRACTORS), categories=(1, 2, 3))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.764, 0.935), abs=0.03)
    assert (found.n, found.method) == (100, "jackknife")


def test_alpha_is_krippendorffs() -> None:
    assert estimate(compute_alpha(UNITS, apart(UNITS))) == pytest.approx(0.849, abs=5e-4)


def test_alpha_of_two_coders_is_the_books() -> None:
    """The same paper, A: two observers, ten units, two values; alpha is 0.095."""
    one, two = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    table = list(zip(one, two, strict=True))
    assert estimate(compute_alpha(table, apart(table), top=1)) == pytest.approx(0.095, abs=5e-4)


def test_icc_is_shrouts_and_fleiss() -> None:
    assert estimate(compute_icc(TARGETS, apart(TARGETS))) == pytest.approx(0.29, abs=5e-3)


def test_weighted_kappa_is_that_of_irr() -> None:
    table = list(zip(FIRST, SECOND, strict=True))
    assert estimate(compute_kappa(table, apart(table))) == pytest.approx(0.297, abs=5e-4)


def test_kappa_of_passed_or_not_is_cohens() -> None:
    """20 both yes, 5 and 10 one of them, 15 both no: observed 0.7, by chance 0.5, kappa 0.4."""
    first = [1.0] * 25 + [0.0] * 25
    second = [1.0] * 20 + [0.0] * 5 + [1.0] * 10 + [0.0] * 15
    table = list(zip(first, second, strict=True))
    assert estimate(compute_kappa(table, apart(table))) == pytest.approx(0.4)


def test_the_kappa_of_several_is_the_mean_over_pairs_that_have_one() -> None:
    table: Ratings = [(a, b, a) for a, b in zip(FIRST, SECOND, strict=True)]
    mean = (0.2974 * 2 + 1) / 3
    assert estimate(compute_kappa(table, apart(table))) == pytest.approx(mean, abs=1e-3)
    gaps: Ratings = [(*row, None) for row in table]
    assert estimate(compute_kappa(gaps, apart(gaps))) == pytest.approx(mean, abs=1e-3)


def test_flips_are_counted_by_pairs() -> None:
    for ratings, chance in (([8, 8, 6], 2 / 3), ([8, 9], 0), ([6, 7], 1)):
        found = measure_agreement([ratings], ["a"], threshold=7).flip_rate
        assert found is not None and found.estimate == pytest.approx(chance)


def figures(found: Agreement) -> list[float | None]:
    coefficients = (found.alpha, found.pass_alpha, found.ac1, found.icc, found.kappa)
    return [None if one is None else one.estimate for one in coefficients]


def test_raters_who_always_agree_have_full_agreement_and_few_tasks_do_not_show_it() -> None:
    table = [(2, 2), (9, 9), (5, 5)] * 4
    found = measure_agreement(table, apart(table), threshold=7)
    assert figures(found) == pytest.approx([1] * 5)
    assert (found.spread, found.leaves, found.raters) == (0, 12, 2)
    assert found.ac1 is not None and found.ac1.high == 1 and found.ac1.low < 0.6
    assert found.flip_rate is not None and found.flip_rate.estimate == 0
    assert found.flip_rate.high > 0.2
    many = measure_agreement(table * 30, apart(table * 30), threshold=7)
    assert many.ac1 is not None and many.ac1.low > 0.97


def test_opposite_raters_agree_less_than_by_chance() -> None:
    table = [(0, 10), (10, 0), (0, 10), (10, 0)]
    found = measure_agreement(table, apart(table), threshold=7)
    assert found.alpha is not None and found.alpha.estimate < 0
    assert found.kappa is not None and found.kappa.estimate == pytest.approx(-1)
    assert found.flip_rate is not None and found.flip_rate.estimate == 1


@pytest.mark.parametrize("table", [[], [(5, None), (None, 3)], [(5,), (6,)]])
def test_where_nothing_is_paired_there_is_no_agreement(
    table: list[tuple[float | None, ...]],
) -> None:
    found = measure_agreement(table, apart(table), threshold=7)
    assert figures(found) == [None] * 5
    assert found.flip_rate is None and found.spread is None


def test_where_nothing_varies_only_ac1_says_that_all_agree() -> None:
    found = measure_agreement([(4, 4), (4, 4)], ["a", "b"], threshold=7)
    assert figures(found) == [None, None, 1, None, None]


@pytest.mark.parametrize("tasks", [["a"] * 4, ["a", "a", "a", "b"]])
def test_of_one_task_or_where_one_has_all_that_varies_the_interval_says_nothing(
    tasks: list[str],
) -> None:
    found = compute_kappa([(1, 1), (9, 8), (5, 6), (5, 5)], tasks)
    assert found is not None and found.estimate > 0.9
    assert (found.low, found.high) == (-1, 1)


def test_a_gap_leaves_its_row_out_of_the_icc_alone() -> None:
    table = [*TARGETS, (1, None, 9, 9), (5, None, None, None)]
    assert compute_icc(table, apart(table)) == compute_icc(TARGETS, apart(TARGETS))
    found = measure_agreement(table, apart(table), threshold=7)
    assert found.leaves == 7
    assert found.flip_rate is not None and found.flip_rate.n == 7


@pytest.mark.parametrize("accuracy", [0.8, 0.95])
def test_intervals_hold_the_truth_where_leaves_of_a_task_hang_together(accuracy: float) -> None:
    """Known truth: 40 tasks of 6 leaves, 30 % pass, and a judge's errors cluster in tasks."""
    rng = np.random.default_rng(5)
    passing, seen = 0.3, 0.3 * accuracy + 0.7 * (1 - accuracy)
    chance = passing * (1 - seen) + seen * (1 - passing)
    mean = (passing + seen) / 2
    truth = {
        compute_kappa: 1 - (1 - accuracy) / chance,
        compute_ac1: 1 - (1 - accuracy) / (1 - 2 * mean * (1 - mean)),
    }
    tasks = [str(number // 6) for number in range(240)]
    held = dict.fromkeys(truth, 0)
    for _ in range(300):
        hard, wrong = rng.beta(4 * 0.3, 4 * 0.7, 40), rng.beta(4 * (1 - accuracy), 4 * accuracy, 40)
        people = rng.random(240) < np.repeat(hard, 6)
        judge = people ^ (rng.random(240) < np.repeat(wrong, 6))
        table = list(zip(map(float, people), map(float, judge), strict=True))
        for measure, value in truth.items():
            found = (
                compute_kappa(table, tasks, top=1)
                if measure is compute_kappa
                else compute_ac1(table, tasks)
            )
            assert found is not None
            held[measure] += found.low <= value <= found.high
    assert all(275 <= count <= 298 for count in held.values()), held
