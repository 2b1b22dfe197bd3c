"""Rates of a judge on known leaves, and scores corrected for its errors."""

import numpy as np
import pytest

from gta_bench.records.ceiling import LEAST_TASKS, TaskErrors
from gta_bench.records.statistics import Interval
from gta_bench.statistics.ceiling import (
    JudgedShare,
    JudgeErrors,
    correct_share,
    measure_errors,
    measure_rate,
)
from gta_bench.statistics.pooled import Ratio

SYSTEMS = 500
# Correlation of the leaves of a task: of what holds, and of what the judge gets wrong.
OF_TRUTH, OF_ERRORS = 0.4, 0.1


def errors(sensitivity: float, specificity: float, tasks: int = 30) -> JudgeErrors:
    """A judge that errs equally often in every task."""
    rows = [
        TaskErrors(
            task=str(number),
            found=round(100 * sensitivity),
            broken=100,
            passed=round(100 * specificity),
            intact=100,
        )
        for number in range(tasks)
    ]
    found = measure_errors(rows)
    assert found is not None
    return found


def share(passed: int, *, tasks: int = 50) -> JudgedShare:
    return JudgedShare(Ratio([passed] * tasks, [100] * tasks))


@pytest.mark.parametrize(
    ("passed", "judge", "truth"),
    [
        (50, (1.0, 1.0), 0.5),
        (45, (0.9, 0.8), 0.5),
        (10, (0.9, 0.8), 0.0),
        (80, (0.9, 0.8), 1.0),
        (30, (0.8, 0.6), 0.25),
    ],
)
def test_a_score_is_corrected_for_both_errors(
    passed: int, judge: tuple[float, float], truth: float
) -> None:
    found = correct_share(share(passed), errors(*judge))
    assert isinstance(found, Interval)
    assert found.estimate == pytest.approx(truth, abs=1e-9)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert (found.method, found.n) == ("rogan-gladen", 30)


def test_a_score_is_never_below_0_or_above_100() -> None:
    for passed, end in ((8, 0.0), (82, 1.0)):
        found = correct_share(share(passed, tasks=10), errors(0.9, 0.8, tasks=10))
        assert isinstance(found, Interval)
        assert found.estimate == end and 0 <= found.low <= found.high <= 1


def test_a_judge_that_is_no_better_than_chance_corrects_nothing() -> None:
    assert correct_share(share(50), errors(0.5, 0.5)) == "blind"
    assert correct_share(share(50), errors(0.3, 0.6)) == "blind"


@pytest.mark.parametrize("judge", [(1.0, 1.0), (0.85, 0.9), (0.5, 0.5)])
def test_few_tasks_correct_nothing_and_say_nothing_of_the_judge(judge: tuple[float, float]) -> None:
    for tasks in (2, 4, LEAST_TASKS - 1):
        assert correct_share(share(50), errors(*judge, tasks=tasks)) == "few"


def test_verdicts_that_no_true_score_explains_are_not_corrected() -> None:
    """A judge that passes 90 % of intact leaves cannot pass 99 % of a run, nor 2 % if it lets 20 %
    of broken ones through: it errs otherwise there."""
    assert correct_share(share(99, tasks=200), errors(0.8, 0.9, tasks=200)) == "apart"
    assert correct_share(share(2, tasks=200), errors(0.8, 0.9, tasks=200)) == "apart"


def test_leaves_that_checks_decided_are_not_corrected() -> None:
    """Half of the leaves are sure, 30 of 50 of them pass; the judge passes 20 of its 50."""
    whole = JudgedShare(Ratio([50] * 40, [100] * 40), passed=0.3, judged=0.5)
    found = correct_share(whole, errors(0.9, 0.7))
    assert isinstance(found, Interval)
    # (0.4 - 0.1) / 0.6 of the judge's half hold.
    assert found.estimate == pytest.approx(0.3 + 0.5 * 0.5)
    assert found.low >= 0.3 and found.high <= 0.8


def test_the_uncertainty_of_the_ceiling_widens_the_interval() -> None:
    widths = []
    for tasks in (10, 40, 1000):
        found = correct_share(share(50), errors(0.9, 0.9, tasks=tasks))
        assert isinstance(found, Interval)
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True) and widths[0] > 1.1 * widths[-1]


def test_errors_that_go_together_count_together() -> None:
    """A judge that is lenient in some tasks finds less and passes more in them."""
    rows = [
        TaskErrors(task=str(n), found=5 + 4 * (n % 2), broken=10, passed=9 - 4 * (n % 2), intact=10)
        for n in range(20)
    ]
    found = measure_errors(rows)
    assert found is not None and found.shared == pytest.approx(-1)
    apart = found._replace(shared=0.0)
    one, two = (correct_share(share(50), judge) for judge in (found, apart))
    assert isinstance(one, Interval) and isinstance(two, Interval)
    assert one.high - one.low > two.high - two.low


def test_without_broken_or_intact_leaves_there_is_no_rate() -> None:
    row = TaskErrors(task="a", found=0, broken=0, passed=3, intact=4)
    assert measure_errors([row]) is None
    assert measure_errors([row.model_copy(update={"broken": 1, "intact": 0, "passed": 0})]) is None
    assert measure_rate([(0, 0)]) is None
    found = measure_rate([(1, 2), (0, 0)])
    assert found is not None and (found.estimate, found.n) == (0.5, 1)


def draw(random: np.random.Generator, mean: float, correlation: float, size: int) -> list[float]:
    """Rates of tasks around a mean."""
    weight = (1 - correlation) / correlation
    return list(random.beta(mean * weight, (1 - mean) * weight, size))


def test_corrected_scores_cover_the_truth_in_at_least_93_percent_of_500_systems() -> None:
    """Systems from 5 to 95 %, and judges, ceilings and runs of many sizes; refusals are misses."""
    random = np.random.default_rng(28)
    covered = 0
    for _ in range(SYSTEMS):
        truth = random.uniform(0.05, 0.95)
        sensitivity, specificity = random.uniform(0.7, 0.99, 2)
        tasks, leaves = int(random.integers(15, 150)), int(random.integers(4, 16))
        known = int(random.integers(15, 120))
        found = draw(random, sensitivity, OF_ERRORS, known)
        passed = draw(random, specificity, OF_ERRORS, known)
        ceiling = measure_errors(
            TaskErrors(
                task=str(number),
                found=int(random.binomial(6, found[number])),
                broken=6,
                passed=int(random.binomial(36, passed[number])),
                intact=36,
            )
            for number in range(known)
        )
        holds = random.binomial(leaves, draw(random, truth, OF_TRUTH, tasks))
        right = random.binomial(holds, draw(random, specificity, OF_ERRORS, tasks))
        missed = 1 - np.array(draw(random, sensitivity, OF_ERRORS, tasks))
        seen = right + random.binomial(leaves - holds, missed)
        assert ceiling is not None
        score = correct_share(JudgedShare(Ratio(seen, np.full(tasks, leaves))), ceiling)
        covered += isinstance(score, Interval) and score.low <= truth <= score.high
    print(f"covered {covered} of {SYSTEMS}")
    assert covered >= 0.93 * SYSTEMS
