"""Test whether stated outcomes are better than a repetition of them.

If a submission is honest, the stated and the repeated outcome of a leaf are two draws from the same
judge on the same evidence, so the sum of differences in each task has a random sign. The test flips
signs by task (one-sided, Monte Carlo, exact level), because leaves of one task are correlated. It
tests both the passes and the scores, because a cheat could also raise scores below the threshold.
The reported power is the lower one against two kinds of cheats: changing outcomes anywhere, and
changing all outcomes of a few tasks.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gta_bench.records.leaderboard import LEVEL, InflationTest
from gta_bench.statistics.agreement import compute_kappa

FLIPS = 9999
DRAWS = 2000
POWER_FLIPS = 999
# Pairs of a stated and a repeated score.
Outcomes = Sequence[tuple[float, float]]
_Array = npt.NDArray[np.float64]


def find_inflation(
    tasks: Mapping[str, Outcomes], *, effect: float, seed: int, threshold: float = 1.0
) -> InflationTest:
    """Test stated against repeated scores of each task; every task has at least one pair.

    A score of at least `threshold` passes. If all scores are 0 or 1, only the passes are tested;
    otherwise passes and scores are tested, each at half the level.
    """
    passed = {
        task: [(one >= threshold, two >= threshold) for one, two in own]
        for task, own in tasks.items()
    }
    pairs = [pair for own in passed.values() for pair in own]
    better = sum(stated and not again for stated, again in pairs)
    worse = sum(again and not stated for stated, again in pairs)
    n, disagreement = len(pairs), (better + worse) / len(pairs)
    p_values = [inflation_p(passed, seed=seed)]
    if any({one, two} - {0, 1} for own in tasks.values() for one, two in own):
        p_values.append(inflation_p(tasks, seed=seed))
    kappa = compute_kappa(pairs, [""] * n)
    sizes = [len(own) for own in tasks.values()]
    return InflationTest(
        n=n,
        tasks=len(tasks),
        better=better,
        worse=worse,
        agreement=1 - disagreement,
        kappa=None if kappa is None else kappa.estimate,
        difference=(better - worse) / n,
        p_value=min(1.0, len(p_values) * min(p_values)),
        effect=effect,
        power=min(
            inflation_power(
                sizes,
                disagreement=disagreement,
                effect=effect,
                seed=seed,
                whole=whole,
                level=LEVEL / len(p_values),
            )
            for whole in (False, True)
        ),
    )


def inflation_p(tasks: Mapping[str, Outcomes], *, seed: int) -> float:
    """Return the probability that honest scores exceed repeated ones by as much."""
    sums = [sum(float(one) - float(two) for one, two in own) for own in tasks.values()]
    return float(_p_values(np.array([sums]), FLIPS, np.random.default_rng(seed))[0])


def inflation_power(
    sizes: Sequence[int],
    *,
    disagreement: float,
    effect: float,
    seed: int,
    whole: bool = False,
    level: float = LEVEL,
    draws: int = DRAWS,
) -> float:
    """Return, by simulation, the power of the test if `effect` of all outcomes became passes.

    `sizes` has the number of outcomes of each task. `disagreement` is the share of outcomes that
    honest repetitions change, half of them in each direction. With `whole`, the cheat changes all
    outcomes of some tasks instead of single outcomes.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.random((draws, sum(sizes)))
    half = disagreement / 2
    if whole:
        turned = np.repeat(rng.random((draws, len(sizes))) < effect, sizes, axis=1)
    else:
        turned = (drawn >= 2 * half) & (drawn < 2 * half + effect)
    gaps = np.where(turned, 1, np.where(drawn < half, -1, np.where(drawn < 2 * half, 1, 0)))
    starts = np.cumsum([0, *sizes[:-1]])
    sums: _Array = np.add.reduceat(gaps, starts, axis=1).astype(np.float64)
    return float(np.mean(_p_values(sums, POWER_FLIPS, rng) < level))


def _p_values(sums: _Array, flips: int, rng: np.random.Generator) -> _Array:
    """Return the p-value of each row of task sums: how often flipped signs reach its total."""
    signs = rng.choice((-1.0, 1.0), (flips, sums.shape[1]))
    flipped = sums @ signs.T
    as_much = (flipped >= sums.sum(1)[:, None] - 1e-9).sum(1)
    found: _Array = (1 + as_much) / (1 + flips)
    return found
