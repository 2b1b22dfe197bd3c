"""What an order of systems is worth: rank intervals, and groups that cannot be told apart."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from gta_bench.records.statistics import RankInterval, Standing
from gta_bench.statistics.bootstrap import RESAMPLES, Ratio, drawn
from gta_bench.statistics.paired import holm

Pair = tuple[int, int]


def rank_intervals(
    systems: Sequence[Ratio], *, seed: int, level: float = 0.95, resamples: int = RESAMPLES
) -> tuple[RankInterval, ...]:
    """Ranks of pooled scores on the same tasks when the tasks are drawn again.

    Equal scores share the best of their ranks; the interval reaches to the worst of them.
    """
    n = len(systems[0].numerators)
    tops = np.array([system.numerators for system in systems], dtype=np.float64)
    bottoms = np.array([system.denominators for system in systems], dtype=np.float64)
    lows, highs = [], []
    for weights in drawn(n, seed=seed, resamples=resamples):
        scores = (weights @ tops.T) / (weights @ bottoms.T)
        lows.append(stats.rankdata(-scores, method="min", axis=1))
        highs.append(stats.rankdata(-scores, method="max", axis=1))
    tail = (1 - level) / 2
    low = np.quantile(np.concatenate(lows), tail, axis=0, method="lower")
    high = np.quantile(np.concatenate(highs), 1 - tail, axis=0, method="higher")
    values = [system.value for system in systems]
    return tuple(
        RankInterval(
            rank=1 + sum(other > value for other in values), low=int(first), high=int(last)
        )
        for value, first, last in zip(values, low, high, strict=True)
    )


def standings(
    scores: Sequence[float], p_values: Mapping[Pair, float], *, level: float = 0.05
) -> tuple[Standing, ...]:
    """Groups and rank bounds from a test of every pair, corrected by Holm for their number.

    `p_values` has one entry for each pair of places (lower place first). A system ranks below
    those that are told to be better, and above those that are told to be worse.
    """
    pairs = list(p_values)
    adjusted = dict(zip(pairs, holm([p_values[one] for one in pairs]), strict=True))
    apart = {one for one in pairs if adjusted[one] < level}

    def differ(one: int, two: int) -> bool:
        return (min(one, two), max(one, two)) in apart

    places = range(len(scores))
    groups: dict[int, int] = {}
    leader, number = 0, 0
    for place in sorted(places, key=lambda place: -scores[place]):
        if not number or differ(leader, place):
            leader, number = place, number + 1
        groups[place] = number
    return tuple(
        Standing(
            group=groups[place],
            rank=RankInterval(
                rank=1 + sum(other > scores[place] for other in scores),
                low=1 + sum(scores[o] > scores[place] and differ(place, o) for o in places),
                high=len(scores)
                - sum(scores[o] < scores[place] and differ(place, o) for o in places),
            ),
        )
        for place in places
    )
