"""Sources of uncertainty, on runs whose only source is known."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from gta_bench.judge_quality.budget import Budget, budget_table, budgets
from gta_bench.metrics.labels import People
from gta_bench.metrics.panel import pack_leaves
from gta_bench.metrics.workflow_scores import Thresholds, score_workflow
from gta_bench.records.run import System
from gta_bench.records.steps import AnswerStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.reports.certainty import collect_metrics
from gta_bench.reports.workflow_summary import WorkflowSummary
from tests.builders import manifest as build_manifest
from tests.judging.builders import task

TASKS, LEAVES = 40, 5


def summary(
    passes: Callable[[int, int, int, int], bool], *, epochs: int, repeats: int, labeled: int = 0
) -> WorkflowSummary:
    """`passes` says so of task, epoch, leaf and repeat; people always agree with the judge."""
    tasks = [task(str(number), leaves=LEAVES) for number in range(TASKS)]
    units = [
        WorkflowUnit(task=one, epoch=epoch, trace=(AnswerStep(content="Done."),), deliverables=())
        for one, epoch in product(tasks, range(1, epochs + 1))
    ]
    rows = [
        VerdictRow(
            key=VerdictKey(task=str(t), epoch=e, leaf=f"cp1-{leaf}", judge="j", repeat=r),
            verdict=Scored(value=9.0 if passes(t, e, leaf, r) else 1.0, reason=""),
        )
        for t, e, leaf, r in product(
            range(TASKS), range(1, epochs + 1), range(1, LEAVES + 1), range(1, repeats + 1)
        )
    ]
    scores = score_workflow(units, rows, thresholds=Thresholds(7, 7))
    manifest = build_manifest(
        dataset="workflow",
        mode="workflow",
        system=System(model="m", agent="react"),
        tasks=tuple(one.id for one in tasks),
        epochs=epochs,
    )
    settled = {
        (str(t), e, f"cp1-{leaf}"): 9.0 if passes(t, e, leaf, 1) else 1.0
        for t, e, leaf in product(range(labeled), range(1, epochs + 1), range(1, LEAVES + 1))
    }
    return WorkflowSummary(
        "a", manifest, scores, leaves=pack_leaves([rows], units), people=People(settled)
    )


def only(found: WorkflowSummary) -> Budget:
    (budget,) = budgets([found], collect_metrics([found]))
    return budget


def test_without_repeats_and_labels_only_tasks_are_known() -> None:
    found = summary(lambda t, e, leaf, r: t % 3 == 0, epochs=1, repeats=1)
    (row,) = budget_table(budgets([found], collect_metrics([found]))).rows
    assert row == ("a", "j", "Leaf SR", "100 %", "unknown", "unknown", "unknown")


def test_what_is_always_the_same_leaves_nothing_to_repeats_and_noise() -> None:
    found = summary(lambda t, e, leaf, r: t % 3 == 0, epochs=2, repeats=2, labeled=TASKS)
    (row,) = budget_table(budgets([found], collect_metrics([found]))).rows
    assert row[3:] == ("100 %", "0 %", "0 %", "0 %")


def test_luck_of_a_repeat_does_not_count_as_tasks() -> None:
    random = np.random.default_rng(2)
    coin = random.random((TASKS, 5)) < 0.5
    budget = only(summary(lambda t, e, leaf, r: bool(coin[t, e]), epochs=4, repeats=2))
    assert budget.noise == 0
    assert budget.repeats is not None
    # Coins of 40 tasks with four epochs, all leaves alike.
    assert budget.repeats == pytest.approx(0.25 / (TASKS * 4), rel=0.1)
    assert budget.tasks < 0.5 * budget.repeats


def test_a_judge_that_tosses_coins_is_noise() -> None:
    random = np.random.default_rng(3)
    coin = random.random((TASKS, LEAVES + 1, 5)) < 0.5
    budget = only(summary(lambda t, e, leaf, r: bool(coin[t, leaf, r]), epochs=1, repeats=4))
    assert budget.noise == pytest.approx(0.25 / (4 * TASKS * LEAVES), rel=0.1)
    assert budget.repeats is None


def test_a_judge_that_tosses_one_coin_for_all_leaves_of_a_task_is_noise_too() -> None:
    """Leaves of a call vary together. Leaf by leaf, only a fifth of this noise was found."""
    coins = np.random.default_rng(3).random((TASKS, 4)) < 0.5
    found = only(summary(lambda t, e, leaf, r: bool(coins[t, r - 1]), epochs=1, repeats=4))
    assert found.noise is not None
    # A score is the mean of four coins, of which each of 40 tasks has its own.
    assert found.noise == pytest.approx(0.25 / 4 / TASKS, rel=0.3)


def test_few_labels_without_an_error_leave_a_bias_possible() -> None:
    budget = only(summary(lambda t, e, leaf, r: t % 2 == 0, epochs=1, repeats=1, labeled=4))
    assert budget.bias == pytest.approx(0.5 / (4 * LEAVES) ** 2 * 0.9)
    assert budget.share(budget.bias).endswith("%")


def test_one_labeled_task_does_not_show_a_bias() -> None:
    found = summary(lambda t, e, leaf, r: t % 3 == 0, epochs=1, repeats=1, labeled=1)
    (row,) = budget_table(budgets([found], collect_metrics([found]))).rows
    assert row[-1] == "unknown"


def test_a_score_that_does_not_vary_has_no_sources() -> None:
    budget = only(summary(lambda t, e, leaf, r: True, epochs=1, repeats=1))
    assert budget.share(budget.tasks) == "-"
