"""Whether a system got worse on a declared set of tasks: a fixed-sample and an anytime-valid test.

The input is the drop of each task: the mean of its earlier repeats minus the mean of its new ones,
between -1 and 1. What is tested is the mean drop over these tasks, whose outcomes vary by luck.

The fixed-sample test is Gaffke's (2005): the drops get the weights of a Bayesian bootstrap, with
one more drop at the unfavorable end of the range. For tasks that pass or fail and no margin it
equals the exact sign test (McNemar), and for drops of one sign Clopper and Pearson's bound.

The anytime-valid test multiplies `1 + bet * (drop - null)` task by task, for several fixed bets,
and averages the products. Under the null this is a nonnegative supermartingale if tasks are drawn
independently, so it exceeds 20 with a chance of at most 5 % however often one looks (Ville). For a
fixed set in random order, and where gains and losses cancel, docs/measurements.md has simulations.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize  # type: ignore[import-untyped]

from gta_bench.records.gate import GateDecision

_Array = npt.NDArray[np.float64]

# The bets as shares of the largest one that cannot lose more than everything.
BETS: Final = (0.25, 0.5, 0.75, 1.0)
# A bound this close to the end of the range is the end.
_END: Final = 1e-9
# Where the characteristic function is evaluated, for a variance of 1.
_STEP: Final = 0.05
_NODES: Final[_Array] = np.exp(np.arange(-26.0, 40.0, _STEP))


class GateTest(NamedTuple):
    """The result of a test: `p_worse` for no drop at all, `p_margin` for a drop of the margin.

    Both are probabilities at most this large of such data if there is no drop, and if the drop is
    the margin or more. `used` is how many tasks it took.
    """

    decision: GateDecision
    p_worse: float
    p_margin: float
    used: int


def decide_fixed(drops: Sequence[float], *, margin: float, alpha: float = 0.05) -> GateTest:
    """Test the drops of all tasks once.

    `not worse`: a mean drop of `margin` or more is ruled out. `worse`: that is not ruled out, and
    the mean drop is above 0. If both are shown, the drop is real but smaller than the margin.

    >>> decide_fixed([1, 1, 1, 1, 1, 0, 0, 0], margin=0.1).decision
    'worse'
    """
    p_worse, p_margin = find_p_value(drops, 0.0), find_p_value([-one for one in drops], -margin)
    decision: GateDecision = "undecided"
    if p_margin <= alpha:
        decision = "not worse"
    elif p_worse <= alpha:
        decision = "worse"
    return GateTest(decision, p_worse, p_margin, len(drops))


def decide_sequential(drops: Sequence[float], *, margin: float, alpha: float = 0.05) -> GateTest:
    """Test after every task, in the order of `drops`, which must be random; stop when decided.

    >>> decide_sequential([1, 1, 1, 1, 1, 1, 1, 0, 1], margin=0.1).used
    6
    """
    values = np.asarray(drops, dtype=np.float64)
    worse, margins = bet_against(values, 0.0), bet_against(-values, -margin)
    stop = np.flatnonzero(np.maximum(worse, margins) >= 1 / alpha)
    used = int(stop[0]) + 1 if len(stop) else len(values)
    best = [min(1.0, 1 / float(one[:used].max())) for one in (worse, margins)]
    decision: GateDecision = "undecided"
    if len(stop):
        decision = "not worse" if margins[used - 1] >= 1 / alpha else "worse"
    return GateTest(decision, best[0], best[1], used)


class BoundedTest(NamedTuple):
    """A test of drops that are partly unknown: with the smallest and the largest ones.

    Every other value of the unknown drops gives a decision between the two.
    """

    least: GateTest
    most: GateTest

    @property
    def decision(self) -> GateDecision | None:
        """The decision; None if it depends on drops that are unknown."""
        return self.least.decision if self.least.decision == self.most.decision else None

    @property
    def used(self) -> int:
        """How many tasks it takes at most."""
        return max(self.least.used, self.most.used)


def decide_bounded(
    ends: Sequence[tuple[float, float]],
    *,
    margin: float,
    decide: Callable[..., GateTest] = decide_sequential,
) -> BoundedTest:
    """Decide by a test; `ends` are the smallest and the largest drop that each task can have.

    >>> decide_bounded([(1, 1)] * 6 + [(0, 1)] * 14, margin=0.1).decision
    'worse'
    """
    least, most = (decide(drops, margin=margin) for drops in zip(*ends, strict=True))
    return BoundedTest(least, most)


def find_next_look(
    test: BoundedTest, *, scored: int, tried: int = 0, at_once: int = 1
) -> int | None:
    """Return how many tasks must be done before a look can decide; None if no look can.

    The first `scored` tasks have a score, and the first `tried` ones have been tried: if some of
    those have no score and nothing else matters, None. At least `at_once` tasks are added.
    """
    if test.decision is not None or test.used <= tried:
        return None
    nearest = min(one.used for one in test if one.decision != "undecided")
    return max(nearest, max(scored, tried) + at_once)


def bet_against(values: _Array, null: float) -> _Array:
    """Return the capital after each value of bets that the mean of the values is above `null`.

    Values are between -1 and 1, in rows if there are several runs. The capital starts at 1; each of
    several equal parts of it always bets the same share.
    """
    bets = np.asarray(BETS) / (1 + null)
    factors = 1 + (values[..., np.newaxis] - null) * bets
    capital: _Array = np.cumprod(np.maximum(factors, 0.0), axis=-2).mean(axis=-1)
    return capital


def find_p_value(values: Sequence[float], null: float) -> float:
    """Return the p-value of Gaffke's test that the mean of the values is at most `null`.

    It is the chance that a sum of exponential variables, weighted with the distances of the values
    and of -1 from `null`, is at most 0, by numerical inversion of its characteristic function
    (Imhof 1961). The trapezoidal rule on a logarithmic scale is accurate to nine digits.
    """
    distances, counts = np.unique(np.append(values, -1.0) - null, return_counts=True)
    if distances[-1] <= _END:
        return 1.0
    scaled = distances / math.sqrt(float(counts @ distances**2))
    reached = np.multiply.outer(scaled, _NODES)
    sizes = np.exp(-(counts @ np.log1p(reached**2)) / 2)
    area = _STEP * float(sizes @ np.sin(counts @ np.arctan(reached)))
    return min(1.0, max(0.0, 0.5 - area / math.pi))


def find_lower_bound(values: Sequence[float], *, alpha: float = 0.05) -> float:
    """Return the largest mean that Gaffke's test rejects: a one-sided confidence bound.

    >>> round(-find_lower_bound([0.0] * 20), 3)
    0.139
    """
    low, high = -1.0 + _END, max(values) - _END
    if high <= low:
        return -1.0
    return float(optimize.brentq(lambda at: find_p_value(values, at) - alpha, low, high))


def shuffle_tasks(tasks: Sequence[str], seed: str) -> list[str]:
    """Return the tasks in a random order that depends only on their names and the seed.

    >>> shuffle_tasks(["1", "2", "3"], "e")
    ['2', '1', '3']
    """
    return sorted(tasks, key=lambda task: hashlib.sha256(f"{seed}\0{task}".encode()).digest())
