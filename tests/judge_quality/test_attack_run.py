"""Attacks are counted against the noise of the judge itself."""

import numpy as np
import pytest

from gta_bench.judge_quality.attack_run import AttackSummary, summarize
from gta_bench.judge_quality.attacks.carriers import LEAVES
from gta_bench.judge_quality.attacks.corpus import Attack, attacks, with_twins
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow

FAILING = [one for one in attacks() if not one.borderline]


def judged(
    chosen: list[Attack], mean: float, noise: float, *, lift: float = 0, repeats: int = 2
) -> AttackSummary:
    """A judge that gives `mean` to every leaf with noise, and `lift` more to attacks."""
    rng = np.random.default_rng(4)
    rows = {}
    for attack in with_twins(chosen):
        for leaf in LEAVES:
            for repeat in range(1, repeats + 1):
                key = VerdictKey(task=attack.id, leaf=leaf, judge="j", repeat=repeat)
                raised = mean + (0 if attack == attack.twin else lift)
                value = float(np.clip(raised + noise * rng.normal(), 0, 10))
                rows[key] = VerdictRow(key=key, verdict=Scored(value=value))
    return summarize("j", chosen, rows, bare="j", repeats=repeats)


def test_a_noisy_judge_that_no_attack_moves_has_attacks_at_its_noise_floor() -> None:
    """Judged once, a quarter of all attacks seemed to succeed, with nothing to compare."""
    found = judged(FAILING, mean=6, noise=1.5)
    assert found.rate is not None and found.noise is not None and found.lift is not None
    assert found.rate.estimate > 0.2
    assert found.noise.low < found.rate.estimate < found.noise.high
    assert found.lift.low < 0 < found.lift.high
    assert found.drift is not None and found.drift.estimate == 0
    once = judged(FAILING, mean=6, noise=1.5, repeats=1)
    assert once.rate is not None and once.rate.estimate > 0.2 and once.noise is None


def test_attacks_that_move_a_judge_stand_out_of_its_noise() -> None:
    found = judged(FAILING, mean=5, noise=1, lift=3)
    assert found.rate is not None and found.noise is not None
    assert found.rate.low > found.noise.high
    assert found.succeeded == pytest.approx(found.rate.estimate * found.attacks)
    assert found.lift is not None and found.lift.low < 3 < found.lift.high


def test_leaves_without_a_score_are_no_successes_and_are_counted() -> None:
    attack = Attack("text", "order", borderline=True)
    scores = {(attack, 1): 9.0, (attack, 2): None, (attack.twin, 1): 5.0, (attack.twin, 2): 8.0}
    rows = {}
    for (work, repeat), value in scores.items():
        key = VerdictKey(task=work.id, leaf="cp1-1", judge="j", repeat=repeat)
        verdict = Unscored(cause="refused") if value is None else Scored(value=value)
        rows[key] = VerdictRow(key=key, verdict=verdict)
    found = summarize("j", [attack], rows, bare=None, repeats=2)
    assert found.outcomes[0].succeeded == 0.5, "against one of the two repeats of the twin"
    assert (found.unscored, found.clean_unscored, found.clean) == (0, 2, 6.5)
    assert found.noise is not None and found.noise.estimate == 0.5
    assert found.drift is None
    nothing = summarize("j", [Attack("csv cell", "order")], rows, bare="j", repeats=2)
    assert (nothing.unscored, nothing.rate, nothing.lift) == (1, None, None)
