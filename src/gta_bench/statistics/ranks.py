"""What an order of systems is worth: many tests at once, and groups that cannot be told apart."""

from collections.abc import Mapping, Sequence

from gta_bench.records.statistics import RankInterval, Standing

_Pair = tuple[int, int]


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted so that among all these tests a false alarm has at most the usual chance."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)


def standings(
    scores: Sequence[float], p_values: Mapping[_Pair, float], *, level: float = 0.05
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
