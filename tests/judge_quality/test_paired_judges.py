"""Two judges on the same leaves: drift and what it allows."""

import numpy as np

from gta_bench.judge_quality.paired_judges import drift, drift_table, pair_judges
from gta_bench.records.judges import Drift
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import VerdictRow
from tests.metrics.workflow_units import rows, unit

LEAVES = ("a1", "a2", "b")


def judged(
    shift: float = 0.0,
    noise: float = 0.0,
    *,
    tasks: int = 132,
    judge: str = "new",
    evidence: str = "",
    prompts: str = "",
    cost_usd: float | None = None,
) -> list[VerdictRow]:
    """Scores of many tasks; another judge sees the same works, shifted and with noise."""
    truth, random = np.random.default_rng(1), np.random.default_rng(2)
    said: list[VerdictRow] = []
    for number in range(tasks):
        values = (
            truth.integers(0, 11, len(LEAVES)) + shift + noise * random.normal(size=len(LEAVES))
        )
        scores = dict(zip(LEAVES, map(float, np.clip(np.rint(values), 0, 10)), strict=True))
        said += rows(
            scores,
            task=str(number),
            judge=judge,
            evidence=evidence,
            prompts=prompts,
            cost_usd=cost_usd,
        )
    return said


def units(count: int = 132) -> list[WorkflowUnit]:
    return [unit(str(number)) for number in range(count)]


OLD = judged(judge="old", cost_usd=0.01)


def compared(new: list[VerdictRow], margin: float = 0.5) -> Drift:
    pairs = pair_judges(OLD, "old", new, "new")
    return drift(pairs, units(), names=("old", "new"), threshold=7, margin=margin)


def test_a_judge_that_says_the_same_may_share_a_table() -> None:
    found = compared(judged(noise=0.1))
    assert found.sharing == "yes"
    assert (found.leaves, found.tasks, found.left_out) == (396, 132, 0)
    assert found.kappa is not None and found.kappa.low > 0.8
    assert found.ac1 is not None and found.ac1.low > 0.9
    assert [row[0] for row in drift_table(found).rows] == ["leaf score", "Leaf SR", "Root"]


def test_a_lenient_judge_may_not() -> None:
    found = compared(judged(shift=2))
    assert found.sharing == "no"
    assert found.leaf_score.low > 0.5
    assert found.root_score is not None and found.root_score.low > 0.5
    assert found.flips.low > 0.1


def test_too_few_leaves_decide_nothing() -> None:
    few = [row for row in judged(noise=1.0) if int(row.key.task) < 4]
    assert compared(few).sharing == "unknown"
    assert compared(few).left_out == 384


def test_another_margin_allows_more() -> None:
    assert compared(judged(shift=2), margin=5.0).sharing == "yes"


def test_other_evidence_is_another_leaf_and_other_prompts_are_reported() -> None:
    new = judged(evidence="other")
    assert pair_judges(OLD, "old", new, "new").leaves == ()
    assert pair_judges(OLD, "old", new, "new").left_out == 396
    assert not compared(judged(prompts="changed")).same_prompts


def test_unscored_leaves_are_left_out_and_units_without_all_leaves_have_no_root() -> None:
    new = [
        row
        for task in range(132)
        for row in rows({"a1": 5, "a2": "refused"}, task=str(task), judge="new")
    ]
    found = compared(new)
    assert found.leaves == 132
    assert found.root_score is None
    assert [row[0] for row in drift_table(found).rows] == ["leaf score", "Leaf SR"]


def test_repeats_count_by_their_mean() -> None:
    twice = [*rows({"a1": 4}, judge="new"), *rows({"a1": 6}, judge="new", repeat=2)]
    pairs = pair_judges(rows({"a1": 5}, judge="old"), "old", twice, "new")
    assert [(one.old, one.new) for one in pairs.leaves] == [(5, 5)]
