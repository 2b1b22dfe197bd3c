"""What a number of tasks can show: the smallest difference that a test finds often enough."""

import math
from collections.abc import Callable

from scipy import optimize, stats  # type: ignore[import-untyped]


def detectable_unpaired(
    n: int, baseline: float, *, power: float = 0.8, level: float = 0.05
) -> float | None:
    """How much better than `baseline` a share of `n` other tasks must be; None if none is found."""
    return _smallest(
        lambda gain: unpaired_power(n, baseline, baseline + gain, level=level) - power, 1 - baseline
    )


def detectable_paired(
    n: int, baseline: float, *, correlation: float, power: float = 0.8, level: float = 0.05
) -> float | None:
    """The same on the same `n` tasks, when the outcomes of the two systems correlate so much."""
    return _smallest(
        lambda gain: (
            paired_power(n, baseline, baseline + gain, correlation=correlation, level=level) - power
        ),
        1 - baseline,
    )


def detectable_mean(n: int, sd: float, *, power: float = 0.8, level: float = 0.05) -> float:
    """The smallest mean of `n` paired differences of that spread; by the noncentral t."""
    # Ten standard errors are always found.
    most = 10 * sd / math.sqrt(n)
    return float(
        optimize.brentq(lambda gain: mean_power(n, gain, sd, level=level) - power, 0.0, most)
    )


def unpaired_power(n: int, first: float, second: float, *, level: float = 0.05) -> float:
    """The power of the test of two shares with `n` tasks each (Fleiss 1981, uncorrected)."""
    middle = (first + second) / 2
    under_null = math.sqrt(2 * middle * (1 - middle))
    under_gain = math.sqrt(first * (1 - first) + second * (1 - second))
    return _normal_power(math.sqrt(n) * abs(second - first), under_null, under_gain, level=level)


def paired_power(
    n: int, first: float, second: float, *, correlation: float, level: float = 0.05
) -> float:
    """The power of McNemar's test with `n` tasks (Connor 1987)."""
    together = correlation * math.sqrt(first * (1 - first) * second * (1 - second))
    discordant = first * (1 - second) + second * (1 - first) - 2 * together
    gain = abs(second - first)
    # The outcomes cannot agree in more tasks than their shares leave.
    discordant = max(discordant, gain)
    under_gain = math.sqrt(discordant - gain * gain)
    return _normal_power(math.sqrt(n) * gain, math.sqrt(discordant), under_gain, level=level)


def mean_power(n: int, gain: float, sd: float, *, level: float = 0.05) -> float:
    """The power of the paired t test with `n` differences."""
    bound = stats.t.ppf(1 - level / 2, n - 1)
    shift = gain / sd * math.sqrt(n)
    return float(stats.nct.sf(bound, n - 1, shift))


def _normal_power(shift: float, under_null: float, under_gain: float, *, level: float) -> float:
    bound = stats.norm.ppf(1 - level / 2) * under_null
    if under_gain == 0:
        return float(shift > bound)
    return float(stats.norm.cdf((shift - bound) / under_gain))


def _smallest(excess: Callable[[float], float], most: float) -> float | None:
    """Where the excess of power turns positive, between no gain and the largest possible."""
    if most <= 0 or excess(most) < 0:
        return None
    return float(optimize.brentq(excess, 1e-9, most))
