"""The null check finds a method that cries wolf, and says of ours what it should."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest

from gta_bench.decisions import comparison
from gta_bench.decisions.comparison import MeasuredPair
from gta_bench.decisions.comparison_tables import self_test_remark
from gta_bench.records.comparison import ComparedRun, SelfTest
from gta_bench.records.statistics import Difference, Interval
from gta_bench.reports.estimates import Paired, Parts, pair_tasks
from gta_bench.reports.estimates import Part as UnitPart
from gta_bench.statistics.pooled import Ratio, compute_difference
from tests.statistics.simulation import Cell, two_runs

# Few tasks, rare successes: where the bootstrap that was used before covered 87 %.
RARE = Cell("leaves", 30, (0.05, 0.05), 0.4)
USUAL = Cell("passed", 132, (0.4, 0.4), 0.4)

Patch = Callable[[Cell], None]
Array = npt.NDArray[np.float64]


@pytest.fixture
def comparing(monkeypatch: pytest.MonkeyPatch) -> Patch:
    def compare(cell: Cell) -> None:
        monkeypatch.setattr(comparison, "pair_metrics", lambda *_: metrics_of(cell))

    return compare


def metrics_of(cell: Cell) -> tuple[list[MeasuredPair], list[Paired]]:
    """A primary and a secondary metric of two runs of that cell."""
    random = np.random.default_rng(3)
    tasks = [str(place) for place in range(cell.tasks)]
    measured, pairs = [], []
    for role in ("primary", "secondary"):
        sides = [parts_of(ratio) for ratio in two_runs(random, cell)]
        measured.append(MeasuredPair(role, role, sides[0], sides[1]))
        pairs.append(pair_tasks(sides[0], sides[1], tasks, epochs=(1, 1)))
    return measured, pairs


def parts_of(ratio: Ratio) -> Parts:
    pairs = zip(ratio.numerators, ratio.denominators, strict=True)
    return {(str(n), 1): UnitPart(float(one), float(two)) for n, (one, two) in enumerate(pairs)}


def checked(rounds: int) -> SelfTest:
    run = cast(ComparedRun, SimpleNamespace(name="run"))
    return comparison.self_test(run, run, rounds=rounds)


def test_equal_systems_are_seldom_told_apart_and_planted_leads_are_held(comparing: Patch) -> None:
    comparing(USUAL)
    found = checked(400)
    assert found.alarms <= 0.09
    assert found.secondary_alarms <= 0.09
    assert 0.91 <= found.covered <= 1
    assert 0.65 <= found.found <= 0.95
    assert 8 < found.planted < 30
    assert found == checked(400), "the same runs give the same figures"


def test_what_it_says_fits_a_sentence(comparing: Patch) -> None:
    comparing(USUAL)
    said = self_test_remark(checked(20))
    assert said.startswith("self-test on these 132 tasks: with the two systems swapped")
    assert " 20 times" in said


def result(**changes: object) -> SelfTest:
    found = {"metric": "ArgAcc", "tasks": 132, "rounds": 1000, "planted": 9.0, "found": 0.8}
    alarms = {"alarms": 0.01, "secondary_alarms": 0.02, "covered": 0.95}
    return SelfTest.model_validate({**found, **alarms, **changes})


@pytest.mark.parametrize("metric", ["alarms", "secondary_alarms"])
def test_more_than_five_percent_may_be_chance_or_too_often(metric: str) -> None:
    for share, said in ((0.05, ""), (0.06, "Up to 7.4 % may"), (0.08, "That is too often")):
        remark = self_test_remark(result(**{metric: share}))
        assert said in remark
        assert ("chance" in remark, "rely" in remark) == (share == 0.06, share == 0.08)


def test_too_few_tasks_of_the_main_metric_leave_the_secondary_ones() -> None:
    said = self_test_remark(result(tasks=6, secondary_alarms=0.013))
    assert said == (
        "self-test: 6 tasks of ArgAcc are too few for it; with the two systems swapped task by "
        "task, 1,000 times, a secondary metric told them apart in 1.3 % of the rounds, where 5 % "
        "are allowed."
    )


def bootstrap_t(first: Ratio, second: Ratio, *, top: float = 1.0) -> Difference:
    """The interval that was used before; its test is whether it excludes 0."""
    random = np.random.default_rng(1)
    n = len(first.numerators)
    sides = [
        (sign, [np.asarray(column, dtype=np.float64) for column in side])
        for sign, side in ((1, first), (-1, second))
    ]

    def estimates(weights: Array) -> tuple[Array, Array]:
        gap, moved = np.zeros(len(weights)), np.zeros(weights.shape)
        for sign, (above, below) in sides:
            pooled = (weights @ above) / (weights @ below)
            gap += sign * pooled
            moved += sign * (above - np.outer(pooled, below)) / (weights @ below)[:, None]
        return gap, np.sqrt(n / (n - 1) * (weights * moved**2).sum(axis=1))

    [gap], [error] = estimates(np.ones((1, n)))
    drawn = random.multinomial(n, np.full(n, 1 / n), size=400).astype(float)
    with np.errstate(all="ignore"):
        gaps, errors = estimates(drawn)
        values = (gaps - gap) / errors
    values = values[np.isfinite(values)]
    low, high = gap, gap
    if len(values):
        last, earliest = np.quantile(values, [0.975, 0.025])
        low, high = gap - last * error, gap - earliest * error
    apart = not low <= 0 <= high
    return compute_difference(first, second, top=top).model_copy(
        update={
            "interval": Interval(
                estimate=gap, low=low, high=high, level=0.95, n=n, method="student"
            ),
            "p_value": 0.01 if apart else 0.5,
        }
    )


def test_the_bootstrap_that_was_used_before_is_exposed(
    comparing: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparing(RARE)
    ours = checked(300)
    monkeypatch.setattr(comparison, "compute_difference", bootstrap_t)
    before = checked(300)
    for name, one in (("ours", ours), ("before", before)):
        print(
            f"{name}: alarms {one.alarms:.1%}, {one.secondary_alarms:.1%}, held {one.covered:.1%}"
        )
    assert max(ours.alarms, ours.secondary_alarms) <= 0.08
    assert ours.covered >= 0.9
    assert max(before.alarms, before.secondary_alarms) > 0.1
