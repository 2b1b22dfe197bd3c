"""Error rates and power of the gate. The printed tables go to docs/measurements.md.

10,000 pairs of runs a cell for error rates, 2,000 for power. The sequential test looks after every
task.
"""

from math import sqrt

import pytest

from gta_bench.records.gate import GateDecision
from tests.statistics.gate_simulation import KINDS, decide_often, decide_once, simulate_drops

pytestmark = pytest.mark.measure
NULLS, POWERS = 10_000, 2000
MOST = 0.05 + 3.5 * sqrt(0.05 * 0.95 / NULLS)
MARGIN = 0.1
# The true drop, and what must not be decided then.
ERRORS: tuple[tuple[float, GateDecision], ...] = ((0.0, "worse"), (MARGIN, "not worse"))


@pytest.mark.parametrize("kind", KINDS)
def test_neither_decision_is_wrong_more_often_than_announced(kind: str) -> None:
    for repeats in ((1, 1), (3, 1), (3, 3)):
        for tasks in (5, 10, 20, 30, 60, 132) if repeats == (1, 1) else (5, 20, 60):
            line = [f"{kind:8} {repeats} {tasks:4}"]
            for drop, wrong in ERRORS:
                drops = simulate_drops(
                    kind, tasks=tasks, drop=drop, repeats=repeats, datasets=NULLS
                )
                decided = decide_once(drops, MARGIN), decide_often(drops, MARGIN)[0]
                rates = [own.count(wrong) / NULLS for own in decided]
                line.append(f"{wrong}: {100 * rates[0]:.2f} {100 * rates[1]:.2f}")
                assert max(rates) <= MOST, (kind, repeats, tasks, wrong, rates)
            print("  ".join(line))


@pytest.mark.parametrize("repeats", [(1, 1), (3, 3)])
def test_power_and_tasks_used(repeats: tuple[int, int]) -> None:
    for tasks in (10, 20, 30, 60, 100, 132):
        for drop in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3):
            drops = simulate_drops(
                "alike", tasks=tasks, drop=drop, repeats=repeats, datasets=POWERS
            )
            often, used = decide_often(drops, MARGIN)
            shares = [
                f"{100 * own.count(word) / POWERS:5.1f}"
                for own in (decide_once(drops, MARGIN), often)
                for word in ("worse", "not worse")
            ]
            print(f"{repeats} {tasks:4} {100 * drop:4.0f}:", *shares, f"{used.mean():.0f}")


def test_how_often_an_unchanged_system_passes() -> None:
    for margin in (0.05, 0.1, 0.15, 0.2):
        for tasks in (10, 20, 30, 60, 100, 132):
            shares = []
            for repeats in ((1, 1), (3, 3)):
                drops = simulate_drops(
                    "alike", tasks=tasks, drop=0.0, repeats=repeats, datasets=POWERS
                )
                for own in (decide_once(drops, margin), decide_often(drops, margin)[0]):
                    shares.append(f"{100 * own.count('not worse') / POWERS:5.1f}")
            print(f"margin {100 * margin:.0f}, {tasks:4} tasks:", *shares)
