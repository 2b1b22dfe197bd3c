"""Error rates and power of the gate. The printed tables go to docs/measurements.md.

10,000 pairs of runs a cell for error rates, 2,000 for power. The sequential test looks after every
task.
"""

from math import sqrt
from statistics import fmean

import pytest

from gta_bench.records.gate import GateDecision
from tests.statistics.gate_simulation import (
    KINDS,
    decide_often,
    decide_once,
    simulate_drops,
    simulate_running,
)

pytestmark = pytest.mark.measure
NULLS, POWERS, RUNS = 10_000, 2000, 500
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


@pytest.mark.parametrize("kind", KINDS)
def test_two_workers_and_a_resumed_command_make_no_more_errors(kind: str) -> None:
    """Tasks that fail take five times as long as those that pass, or a fifth."""
    for tasks in (20, 60):
        for slow in (5.0, 0.2):
            line = [f"{kind:8} {tasks:4} {slow:g}"]
            for drop, wrong in ERRORS:
                found = simulate_running(
                    kind, tasks=tasks, drop=drop, datasets=NULLS, margin=MARGIN, slow=slow
                )
                rates = [own.count(wrong) / NULLS for own in (found.decided, found.naive)]
                line.append(f"{wrong}: {100 * rates[0]:.2f} {100 * rates[1]:.2f}")
                line.append(f"used {fmean(found.used):.1f} started {fmean(found.started):.1f}")
                line.append(f"killed {100 * found.killed / NULLS:.0f} %")
                assert rates[0] <= MOST, (kind, tasks, slow, wrong, rates)
            print("  ".join(line))


def test_how_many_tasks_a_gate_runs() -> None:
    for tasks in (20, 30, 60, 132):
        for drop in (0.0, 0.1, 0.2, 0.3):
            found = simulate_running(
                "alike", tasks=tasks, drop=drop, datasets=RUNS, margin=MARGIN, slow=1.0
            )
            shares = [100 * found.decided.count(word) / RUNS for word in ("worse", "not worse")]
            mean = fmean(found.used)
            print(f"{tasks:4} {100 * drop:4.0f}: {shares[0]:5.1f} {shares[1]:5.1f} used {mean:.1f}")


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
