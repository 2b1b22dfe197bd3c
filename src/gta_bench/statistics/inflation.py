"""Whether outcomes that somebody states are better than repeating them gives.

If they are honest, the stated and the repeated outcome of a leaf are two draws of the same judge on
the same evidence, and all those of a task can be exchanged together: each task's sum of differences
has a random sign. The test flips signs task by task (one-sided, Monte Carlo, exact level), so that
leaves of a task may hang together.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gta_bench.records.verification import LEVEL, InflationTest
from gta_bench.statistics.agreement import weighted_kappa

FLIPS = 9999
DRAWS = 2000
POWER_FLIPS = 999
Outcomes = Sequence[tuple[bool, bool]]
Array = npt.NDArray[np.float64]


def find_inflation(tasks: Mapping[str, Outcomes], *, effect: float, seed: int) -> InflationTest:
    """The test of stated against repeated outcomes (in this order), of tasks that have some."""
    pairs = [pair for own in tasks.values() for pair in own]
    better = sum(stated and not again for stated, again in pairs)
    worse = sum(again and not stated for stated, again in pairs)
    n = len(pairs)
    return InflationTest(
        n=n,
        tasks=len(tasks),
        better=better,
        worse=worse,
        agreement=1 - (better + worse) / n,
        kappa=weighted_kappa(*zip(*pairs, strict=True)),
        difference=(better - worse) / n,
        p_value=inflation_p(tasks, seed=seed),
        effect=effect,
        power=inflation_power(
            [len(own) for own in tasks.values()],
            disagreement=(better + worse) / n,
            effect=effect,
            seed=seed,
        ),
    )


def inflation_p(tasks: Mapping[str, Outcomes], *, seed: int) -> float:
    """The chance that honest outcomes are better than repeated ones by as much."""
    sums = np.array([[sum(int(one) - int(two) for one, two in own) for own in tasks.values()]])
    return float(_p_values(sums.astype(np.float64), FLIPS, np.random.default_rng(seed))[0])


def inflation_power(
    sizes: Sequence[int], *, disagreement: float, effect: float, seed: int, draws: int = DRAWS
) -> float:
    """How often the test finds that `effect` of all outcomes were turned into passes.

    `sizes` are the outcomes of each task. `disagreement` is the share of outcomes that honest
    repetitions change, half of them in each direction. By simulation.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.random((draws, sum(sizes)))
    half = disagreement / 2
    gaps = np.where(drawn < half, -1, np.where(drawn < 2 * half + effect, 1, 0))
    starts = np.cumsum([0, *sizes[:-1]])
    sums: Array = np.add.reduceat(gaps, starts, axis=1).astype(np.float64)
    return float(np.mean(_p_values(sums, POWER_FLIPS, rng) < LEVEL))


def _p_values(sums: Array, flips: int, rng: np.random.Generator) -> Array:
    """The p-value of each row of sums by task: how often flipped signs give as much."""
    signs = rng.choice((-1.0, 1.0), (flips, sums.shape[1]))
    flipped = sums @ signs.T
    as_much = (flipped >= sums.sum(1)[:, None] - 1e-9).sum(1)
    found: Array = (1 + as_much) / (1 + flips)
    return found
