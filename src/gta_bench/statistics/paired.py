"""Two systems on the same tasks: what the tasks have in common drops out of the comparison."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.records.statistics import DifferenceTest, PairedValues
from gta_bench.statistics.bootstrap import Ratio

PERMUTATIONS = 9999


def pair(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> PairedValues:
    """Tasks that both systems have a value for; None is unscored, through no fault of theirs."""
    kept: list[tuple[str, float, float]] = []
    left_out: list[str] = []
    for task in sorted({*first, *second}):
        one, two = first.get(task), second.get(task)
        if one is None or two is None:
            left_out.append(task)
        else:
            kept.append((task, one, two))
    return PairedValues(
        tasks=tuple(task for task, _, _ in kept),
        first=tuple(one for _, one, _ in kept),
        second=tuple(two for _, _, two in kept),
        left_out=tuple(left_out),
    )


def paired_permutation(
    first: Ratio, second: Ratio, *, seed: int, permutations: int = PERMUTATIONS
) -> DifferenceTest:
    """Whether two pooled scores differ, by swapping the systems task by task, two-sided.

    Exact where all swaps can be tried (up to 13 tasks), sampled beyond. Numerator and
    denominator of a task are swapped together, so scipy is given their places.
    """
    numerators = np.concatenate([first.numerators, second.numerators])
    denominators = np.concatenate([first.denominators, second.denominators])
    n = len(first.numerators)
    if n == 1:  # scipy refuses it; either way round, the gap is the same
        gap_of_one = first.value - second.value
        return DifferenceTest(difference=gap_of_one, p_value=1.0, n=n, method="permutation")

    def gap(
        one: npt.NDArray[np.int_], two: npt.NDArray[np.int_], axis: int = -1
    ) -> npt.NDArray[np.float64]:
        value = numerators[one].sum(axis) / denominators[one].sum(axis)
        other = numerators[two].sum(axis) / denominators[two].sum(axis)
        gaps: npt.NDArray[np.float64] = np.abs(value - other)
        return gaps

    result = stats.permutation_test(
        (np.arange(n), np.arange(n) + n),
        gap,
        permutation_type="samples",
        # Both sides at once: the swapped differences are symmetric, and the sampling error halves.
        alternative="greater",
        vectorized=True,
        n_resamples=permutations,
        batch=1000,
        rng=np.random.default_rng(seed),
    )
    return DifferenceTest(
        difference=first.value - second.value,
        p_value=float(result.pvalue),
        n=n,
        method="permutation",
    )


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> DifferenceTest:
    """Whether two systems pass the same tasks equally often: the exact test of McNemar."""
    better = sum(one and not two for one, two in zip(first, second, strict=True))
    worse = sum(two and not one for one, two in zip(first, second, strict=True))
    p_value = stats.binomtest(better, better + worse).pvalue if better + worse else 1.0
    return DifferenceTest(
        difference=(better - worse) / len(first),
        p_value=float(p_value),
        n=len(first),
        method="mcnemar-exact",
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted so that among all these tests a false alarm has at most the usual chance."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)
