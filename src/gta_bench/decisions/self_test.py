"""The null check: how often this comparison would cry wolf on these very data."""

from statistics import fmean, median
from typing import Final

import numpy as np
import numpy.typing as npt

from gta_bench.decisions.comparison import MeasuredPair, correct, differences, pair_metrics
from gta_bench.errors import RunError
from gta_bench.records.comparison import ComparedRun, MetricDifference, SelfTest
from gta_bench.reports.pairing import Paired, RunSums
from gta_bench.statistics.missing import Side
from gta_bench.statistics.pooled import Ratio

ROUNDS: Final = 1000
# Any fixed number: the same runs give the same figures.
SEED: Final = 20261116
_Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def self_test(first: ComparedRun, second: ComparedRun, *, rounds: int = ROUNDS) -> SelfTest:
    """Swap the systems task by task, again and again, and look at what is concluded."""
    measured, pairs = pair_metrics(first, second)
    if not differences(measured[:1], pairs[:1]):
        raise RunError(
            f"{first.name} and {second.name} cannot be compared: no task has a score in both."
        )
    random = np.random.default_rng(SEED)
    alarms = others = 0
    shown: list[float] = []
    unequal: list[MetricDifference] = []
    masks = random.random((rounds, len(pairs[0].tasks))) < 0.5
    for mask in masks:
        equal = _tested(measured, [_swap(pair, mask) for pair in pairs])
        alarms += all(one.apart for one in equal if one.role == "primary")
        others += any(one.apart for one in equal if one.role == "secondary")
        shown.append(equal[0].detectable)
    top = measured[0].top or 1.0
    room = _room(pairs[0], top)
    # The same chance in all rounds: tasks stay independent of each other.
    chance = min(1.0, median(shown) / measured[0].scale / room) if room > 0 else 0.0
    for mask in masks:
        better = _plant(_swap(pairs[0], mask), chance, top, random)
        unequal += _tested(measured[:1], [better])
    truth = chance * room * measured[0].scale
    return SelfTest(
        metric=measured[0].name,
        tasks=len(pairs[0].common),
        rounds=rounds,
        alarms=alarms / rounds,
        secondary_alarms=others / rounds,
        planted=truth,
        covered=fmean(one.difference.low <= truth <= one.difference.high for one in unequal),
        found=fmean(one.apart for one in unequal),
    )


def _tested(measured: list[MeasuredPair], pairs: list[Paired]) -> tuple[MetricDifference, ...]:
    return correct([differences(measured, pairs)])[0]


def _swap(pair: Paired, mask: Mask) -> Paired:
    one, two = pair.first, pair.second
    return pair._replace(first=_mixed(one, two, mask), second=_mixed(two, one, mask))


def _mixed(own: RunSums, other: RunSums, mask: Mask) -> RunSums:
    side = Side(*(np.where(mask, two, one) for one, two in zip(own.side, other.side, strict=True)))
    means = (
        np.where(mask, np.asarray(two), np.asarray(one))
        for one, two in zip(own.means, other.means, strict=True)
    )
    return RunSums(side, Ratio(*means))


def _room(pair: Paired, top: float) -> float:
    """What the two lack, on average."""
    return fmean(top - ratio.value for ratio in pair.ratios())


def _plant(pair: Paired, chance: float, top: float, random: np.random.Generator) -> Paired:
    """The first system gains a part of what it lacks, counts one by one."""
    values, seen = (np.asarray(column, dtype=np.float64) for column in pair.first.means)
    lacking = top * seen - values
    whole = np.round(lacking)
    counts = bool(np.all(np.abs(lacking - whole) < 1e-9))
    drawn = random.binomial(whole.astype(int), chance) if counts else chance * lacking
    gained: _Array = np.asarray(drawn, dtype=np.float64)
    better = RunSums(
        pair.first.side._replace(values=pair.first.side.values + _of_side(pair, gained)),
        Ratio(values + gained, seen),
    )
    return pair._replace(first=better)


def _of_side(pair: Paired, gained: _Array) -> _Array:
    """The same gain in the sums over all planned epochs."""
    seen = np.asarray(pair.first.means.denominators, dtype=np.float64)
    share = np.divide(pair.first.side.seen, seen, out=np.zeros(len(seen)), where=seen > 0)
    scaled: _Array = gained * share
    return scaled
