import math

import pytest

from gta_bench.statistics.power import (
    detectable_mean,
    detectable_paired,
    detectable_unpaired,
    mean_power,
    paired_power,
    unpaired_power,
)


@pytest.mark.parametrize(
    ("first", "second", "power", "n"),
    [
        # Sample sizes per group in the textbooks' tables, two-sided 5 %, no correction.
        (0.5, 0.6, 0.8, 388),
        (0.6, 0.7, 0.8, 356),
        (0.65, 0.85, 0.8, 73),
        (0.25, 0.40, 0.9, 203),
    ],
)
def test_the_sample_sizes_of_two_shares_are_the_textbooks(
    first: float, second: float, power: float, n: int
) -> None:
    assert unpaired_power(n, first, second) >= power
    assert unpaired_power(n - 1, first, second) < power


def test_the_sample_size_of_mcnemars_test_is_connors() -> None:
    """Discordant shares 0.2 and 0.1: (1.96 sqrt(.3) + .8416 sqrt(.3 - .01))^2 / .01 = 234."""
    first, second = 0.5, 0.6
    both = 0.4
    correlation = (both - first * second) / math.sqrt(0.25 * 0.24)
    assert paired_power(234, first, second, correlation=correlation) >= 0.8
    assert paired_power(233, first, second, correlation=correlation) < 0.8


def test_the_sample_size_of_the_paired_t_test_is_cohens() -> None:
    """A medium effect (0.5) with 80 % power takes 34 pairs (Cohen 1988)."""
    assert mean_power(34, 0.5, 1) >= 0.8 > mean_power(33, 0.5, 1)
    assert detectable_mean(34, 2.0) == pytest.approx(1.0, abs=0.02)


def test_what_is_detectable_has_the_power_asked_for() -> None:
    gain = detectable_unpaired(132, 0.1)
    assert gain is not None
    assert unpaired_power(132, 0.1, 0.1 + gain) == pytest.approx(0.8)
    gain = detectable_paired(132, 0.1, correlation=0.5, power=0.9, level=0.01)
    assert gain is not None
    assert paired_power(132, 0.1, 0.1 + gain, correlation=0.5, level=0.01) == pytest.approx(0.9)


def test_the_same_tasks_show_smaller_differences_than_other_tasks() -> None:
    other, same = detectable_unpaired(132, 0.3), detectable_paired(132, 0.3, correlation=0.5)
    assert other is not None and same is not None
    assert same < 0.8 * other


@pytest.mark.parametrize("baseline", [0.95, 1.0])
def test_where_no_gain_can_be_shown_there_is_none(baseline: float) -> None:
    assert detectable_unpaired(30, baseline) is None
    assert detectable_paired(30, baseline, correlation=0.5) is None


def test_outcomes_cannot_agree_more_than_their_shares_allow() -> None:
    assert paired_power(100, 0.0, 1.0, correlation=1.0) == 1
    assert paired_power(1, 0.0, 1.0, correlation=1.0) == 0
    assert paired_power(200, 0.1, 0.6, correlation=1.0) > 0.999
