"""Whether outcomes that somebody states are better than repeating them gives.

If they are honest, the stated and the repeated outcome of a leaf are two draws of the same judge on
the same evidence, and all those of a task can be exchanged together: each task's sum of differences
has a random sign. The test flips signs task by task (one-sided, Monte Carlo, exact level), so that
leaves of a task may hang together. Two things are tested, what passed and the scores themselves: a
cheat can raise scores below a threshold, too. Its power is that against the better hidden of two
cheats: one turns outcomes anywhere, the other all outcomes of a few tasks.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gta_bench.records.leaderboard import LEVEL, InflationTest
from gta_bench.statistics.agreement import weighted_kappa

FLIPS = 9999
DRAWS = 2000
POWER_FLIPS = 999
# Scores as stated and as repeated.
Outcomes = Sequence[tuple[float, float]]
_Array = npt.NDArray[np.float64]


def find_inflation(
    tasks: Mapping[str, Outcomes], *, effect: float, seed: int, threshold: float = 1.0
) -> InflationTest:
    """The test of stated against repeated scores (in this order), of tasks that have some.

    A score passes from `threshold` on. Where scores say no more than what passed, that is the one
    test; otherwise there are two, each at half the level.
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
    sizes = [len(own) for own in tasks.values()]
    return InflationTest(
        n=n,
        tasks=len(tasks),
        better=better,
        worse=worse,
        agreement=1 - disagreement,
        kappa=weighted_kappa(*zip(*pairs, strict=True)),
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
    """The chance that honest scores are better than repeated ones by as much."""
    sums: _Array = np.array([[sum(float(one) - float(two) for one, two in own)
                             for own in tasks.values()]])  # fmt: skip
    return float(_p_values(sums, FLIPS, np.random.default_rng(seed))[0])


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
    """How often the test finds that `effect` of all outcomes were turned into passes.

    `sizes` are the outcomes of each task. `disagreement` is the share of outcomes that honest
    repetitions change, half of them in each direction. With `whole` the turned outcomes are all
    those of some tasks. By simulation.
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
    """The p-value of each row of sums by task: how often flipped signs give as much."""
    signs = rng.choice((-1.0, 1.0), (flips, sums.shape[1]))
    flipped = sums @ signs.T
    as_much = (flipped >= sums.sum(1)[:, None] - 1e-9).sum(1)
    found: _Array = (1 + as_much) / (1 + flips)
    return found
