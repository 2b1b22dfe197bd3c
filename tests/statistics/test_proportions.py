import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.statistics.proportions import newcombe, two_proportions, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # The published Root SR of Gemini-2.5-Pro, GPT-5 and Kimi-K2.
        (19, 132, 0.094, 0.214),
        (15, 132, 0.070, 0.179),
        (11, 132, 0.047, 0.143),
        # Harnesses: 0, 15 and 16 of 30.
        (0, 30, 0.0, 0.11),
        (15, 30, 0.33, 0.67),
        (16, 30, 0.36, 0.70),
    ],
)
def test_wilson_gives_the_textbooks_interval(
    successes: int, n: int, low: float, high: float
) -> None:
    interval = wilson(successes, n)
    digits = 4 if n in (263, 148, 20, 29) else 3 if n == 132 else 2
    assert (round(interval.low, digits), round(interval.high, digits)) == (low, high)
    assert (interval.estimate, interval.n, interval.method) == (successes / n, n, "wilson")


@given(st.integers(1, 2000), st.data(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_wilson_is_scipys(n: int, data: st.DataObject, level: float) -> None:
    successes = data.draw(st.integers(0, n))
    low, high = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    interval = wilson(successes, n, level=level)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-12)
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1


def test_a_mean_of_values_between_0_and_1_has_an_interval_too() -> None:
    between = wilson(46.59 * 1.72, 172)
    assert wilson(80, 172).low < between.low < wilson(81, 172).low


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2), (0, 0)])
def test_what_is_no_share_is_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(successes, n)


@pytest.mark.parametrize(
    ("first", "first_n", "second", "second_n", "low", "high"),
    [
        # Newcombe 1998 (difference of independent proportions), table II, method 10.
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (10, 10, 0, 10, 0.6075, 1.0),
    ],
)
def test_newcombes_difference_is_the_textbooks(
    first: int, first_n: int, second: int, second_n: int, low: float, high: float
) -> None:
    interval = newcombe(first, first_n, second, second_n)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert interval.n == min(first_n, second_n)


def test_the_test_of_two_shares_is_the_chi_square_test_without_correction() -> None:
    table = [[19, 132 - 19], [11, 132 - 11]]
    expected = stats.chi2_contingency(table, correction=False).pvalue
    test = two_proportions(19, 132, 11, 132)
    assert test.p_value == pytest.approx(expected)
    assert test.difference == pytest.approx(8 / 132)


def test_two_shares_of_nothing_do_not_differ() -> None:
    assert two_proportions(0, 132, 0, 132).p_value == 1
