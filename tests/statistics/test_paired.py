import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.statistics.bootstrap import Ratio
from gta_bench.statistics.paired import holm, mcnemar, pair, paired_permutation

# Darwin's maize, crossed against self-fertilized, in inches: the data of Fisher 1935.
CROSSED = [23.5, 12, 21, 22, 19.125, 21.5, 22.125, 20.375, 18.25, 21.625, 23.25, 21, 22.125, 23, 12]
SELFED = [
    17.375,
    20.375,
    20,
    20,
    18.375,
    18.625,
    18.625,
    15.25,
    16.5,
    18,
    16.25,
    18,
    12.75,
    15.5,
    18,
]


def means(values: list[float]) -> Ratio:
    return Ratio(values, [1.0] * len(values))


def test_fishers_permutation_of_darwins_maize() -> None:
    """Fisher counted 1,726 of 32,768 arrangements at least as far out: p = 0.05267."""
    test = paired_permutation(means(CROSSED), means(SELFED), seed=1, permutations=2**15)
    assert test.p_value == pytest.approx(1726 / 32768, abs=1e-9)
    assert test.difference == pytest.approx(2.6167, abs=1e-4)
    assert (test.n, test.method) == (15, "permutation")


def test_one_common_task_tells_nothing_apart() -> None:
    found = paired_permutation(means([1.0]), means([0.5]), seed=0)
    assert (found.p_value, found.difference, found.n) == (1.0, 0.5, 1)


def test_sampled_swaps_come_near_to_all_swaps() -> None:
    test = paired_permutation(means(CROSSED), means(SELFED), seed=1)
    assert test.p_value == pytest.approx(0.0527, abs=0.01)


def test_denominators_are_swapped_with_their_numerators() -> None:
    """Brute force over all 16 swaps of four tasks."""
    first, second = Ratio([3, 1, 4, 2], [4, 2, 5, 2]), Ratio([1, 1, 2, 0], [3, 4, 6, 1])
    table = np.array(
        [[first.numerators, second.numerators], [first.denominators, second.denominators]]
    )
    differences = []
    for swaps in range(16):
        chosen = np.array([swaps >> place & 1 for place in range(4)])
        one = table[:, chosen, range(4)].sum(axis=1)
        two = table[:, 1 - chosen, range(4)].sum(axis=1)
        differences.append(one[0] / one[1] - two[0] / two[1])
    expected = np.mean([abs(value) >= abs(differences[0]) - 1e-12 for value in differences])
    assert paired_permutation(first, second, seed=1).p_value == pytest.approx(expected)


def outcomes(*, both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    one = [True] * (both + first) + [False] * (second + neither)
    two = [True] * both + [False] * first + [True] * second + [False] * neither
    return one, two


@pytest.mark.parametrize(
    ("first", "second", "p_value"),
    [
        # Agresti, Categorical Data Analysis: 5 against 0, and 12 against 4 discordant pairs.
        (5, 0, 0.0625),
        (12, 4, 0.0768),
        (3, 3, 1.0),
        (0, 0, 1.0),
    ],
)
def test_mcnemar_is_the_exact_binomial_test_of_the_discordant_pairs(
    first: int, second: int, p_value: float
) -> None:
    test = mcnemar(*outcomes(both=10, first=first, second=second, neither=20))
    assert test.p_value == pytest.approx(p_value, abs=1e-4)
    assert test.difference == pytest.approx((first - second) / test.n)


def test_holm_gives_the_textbooks_adjusted_values() -> None:
    """The worked example of Holm 1979 as R's p.adjust prints it."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()


def test_holm_is_never_below_the_false_discovery_rate() -> None:
    values = np.random.default_rng(1).random(40) ** 3
    assert np.all(np.array(holm(list(values))) >= stats.false_discovery_control(values) - 1e-12)


def test_tasks_that_one_system_has_no_score_for_are_left_out_and_named() -> None:
    """An infrastructure failure is no failure of the system."""
    paired = pair({"1": 0.5, "2": None, "3": 0.0}, {"1": 1.0, "2": 1.0, "3": 0.0, "4": 1.0})
    assert paired.tasks == ("1", "3")
    assert (paired.first, paired.second) == ((0.5, 0.0), (1.0, 0.0))
    assert paired.left_out == ("2", "4")
