"""Agreement against the values that textbooks print."""

import pytest

from gta_bench.statistics.agreement import (
    agreement,
    flip_chance,
    icc,
    krippendorff_alpha,
    nominal_distance,
    pairwise_kappa,
    weighted_kappa,
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


def test_alpha_is_krippendorffs() -> None:
    assert krippendorff_alpha(UNITS) == pytest.approx(0.849, abs=5e-4)
    assert krippendorff_alpha(UNITS, nominal_distance) == pytest.approx(0.743, abs=5e-4)


def test_alpha_of_two_coders_is_the_books() -> None:
    """The same paper, A: two observers, ten units, two values; alpha is 0.095."""
    one, two = (0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)
    table = list(zip(one, two, strict=True))
    assert krippendorff_alpha(table, nominal_distance) == pytest.approx(0.095, abs=5e-4)


def test_icc_is_shrouts_and_fleiss() -> None:
    assert icc(TARGETS) == pytest.approx(0.29, abs=5e-3)


def test_weighted_kappa_is_that_of_irr() -> None:
    assert weighted_kappa(FIRST, SECOND) == pytest.approx(0.297, abs=5e-4)


def test_kappa_of_passed_or_not_is_cohens() -> None:
    """20 both yes, 5 and 10 one of them, 15 both no: observed 0.7, by chance 0.5, kappa 0.4."""
    first = [1.0] * 25 + [0.0] * 25
    second = [1.0] * 20 + [0.0] * 5 + [1.0] * 10 + [0.0] * 15
    assert weighted_kappa(first, second) == pytest.approx(0.4)


def test_the_kappa_of_several_is_the_mean_over_pairs() -> None:
    table = [(a, b, a) for a, b in zip(FIRST, SECOND, strict=True)]
    assert pairwise_kappa(table) == pytest.approx((0.2974 * 2 + 1) / 3, abs=1e-3)


def test_flips_are_counted_by_pairs() -> None:
    assert flip_chance([8, 8, 6], 7) == pytest.approx(2 / 3)
    assert flip_chance([8, 9], 7) == 0
    assert flip_chance([6, 7], 7) == 1


def test_raters_who_always_agree_have_full_agreement() -> None:
    found = agreement([(2, 2), (9, 9), (5, 5)], threshold=7)
    assert (found.alpha, found.pass_alpha, found.icc, found.kappa) == pytest.approx((1, 1, 1, 1))
    assert (found.spread, found.flip_rate, found.leaves, found.raters) == (0, 0, 3, 2)


def test_opposite_raters_agree_less_than_by_chance() -> None:
    found = agreement([(0, 10), (10, 0), (0, 10), (10, 0)], threshold=7)
    assert found.alpha is not None and found.alpha < 0
    assert found.kappa == pytest.approx(-1)
    assert found.flip_rate == 1


@pytest.mark.parametrize("table", [[], [(5, None), (None, 3)], [(5,), (6,)], [(4, 4), (4, 4)]])
def test_where_nothing_varies_or_nothing_is_paired_there_is_no_agreement(
    table: list[tuple[float | None, ...]],
) -> None:
    found = agreement(table, threshold=7)
    assert (found.alpha, found.pass_alpha, found.icc, found.kappa) == (None,) * 4


def test_a_gap_leaves_its_row_out_of_the_icc_alone() -> None:
    assert icc([*TARGETS, (1, None, 9, 9)]) == icc(TARGETS)
    found = agreement([*TARGETS, (1, None, 9, 9)], threshold=7)
    assert found.leaves == 7
