"""The sentences of a report: what was found, who is ahead, what to do next."""

from collections.abc import Sequence
from typing import Any

import pytest

from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.failures import FailureCount
from gta_bench.records.run import RunSpec, System
from gta_bench.records.statistics import Bounds
from gta_bench.reports.certainty import RunMetrics
from gta_bench.reports.estimates import Estimate, Part, PartTable, estimates
from gta_bench.reports.findings import (
    Contender,
    NextStep,
    OutcomeCounts,
    RunFinding,
    leaf_outcomes,
    list_next_steps,
    state_comparison,
    state_finding,
)
from gta_bench.reports.gains import Loss
from tests.builders import manifest
from tests.metrics.workflow_units import SEVEN, rows, unit

WRONG = FailureCount(cause="wrong content", failures=6, tasks=4)
FORMAT = FailureCount(cause="format", failures=3, tasks=2)
LOST = FailureCount(cause="judge unscored", failures=5, tasks=3)


def score(value: float, metric: str = "root_sr", bounds: Bounds | None = None) -> Estimate:
    return Estimate(metric, value, value - 5, value + 5, 10, 10, bounds)


def leaves(*causes: FailureCount, passed: int = 10) -> OutcomeCounts:
    return OutcomeCounts("leaf", passed, causes)


def test_a_complete_run_says_how_many_tasks_pass_and_the_most_frequent_cause() -> None:
    finding = RunFinding("workflow", score(40), 10, 10, leaves(WRONG, FORMAT))
    assert state_finding(finding) == (
        "4 of 10 tasks pass. The most frequent cause is wrong content: 6 of 9 failed leaves."
    )


def test_a_run_that_lacks_scores_says_where_its_headline_can_still_end() -> None:
    one = score(50, bounds=Bounds(missing=4, low=20.0, high=80.0))
    finding = RunFinding("workflow", one, 6, 10, leaves(LOST, WRONG), missing=5)
    assert state_finding(finding) == (
        "3 of 6 fully judged tasks pass. The other 4 wait for 5 leaves without a score, so "
        "Root SR can still end anywhere from 20.0 to 80.0 %. The cause of all 6 failed leaves is "
        "wrong content."
    )


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            RunFinding("workflow", None, 3, 10, None),
            "No judge has scored this run yet: 3 of 10 tasks are finished.",
        ),
        (
            RunFinding("workflow", None, 0, 3, leaves(LOST), missing=5),
            "No task is fully judged: 5 leaves of 15 have no score.",
        ),
        (
            RunFinding("workflow", score(100), 1, 1, leaves()),
            "The only task passes. Nothing failed.",
        ),
        (
            RunFinding(
                "end-to-end", score(43.21, "ans_acc"), 229, 229, OutcomeCounts("task", 9, (FORMAT,))
            ),
            "AnsAcc is 43.2: on average, a final answer is worth 43.2 % of a right one. The cause "
            "of all 3 failed tasks is format.",
        ),
        (
            RunFinding("end-to-end", score(97.1, "ans_acc"), 9, 9, OutcomeCounts("task", 9, ())),
            "AnsAcc is 97.1: on average, a final answer is worth 97.1 % of a right one.",
        ),
        (
            RunFinding(
                "workflow",
                score(100, bounds=Bounds(missing=1, low=85.7, high=100.0)),
                6,
                7,
                leaves(LOST),
                missing=5,
            ),
            "All 6 fully judged tasks pass. The other 1 waits for 5 leaves without a score, so "
            "Root SR can still end anywhere from 85.7 to 100.0 %.",
        ),
        (
            RunFinding("step", score(60, "arg_acc"), 228, 229, OutcomeCounts("step", 9, ())),
            "ArgAcc is 60.0: 60.0 % of the calls to make have the right tool and arguments. 1 of "
            "229 tasks has no result yet.",
        ),
        (
            RunFinding("step", None, 0, 2, OutcomeCounts("step", 0, ())),
            "Nothing could be measured in 2 tasks.",
        ),
        (
            RunFinding(
                "workflow",
                score(0),
                2,
                2,
                leaves(FailureCount(cause="context", failures=1, tasks=1)),
            ),
            "0 of 2 tasks pass. The only leaf that failed has the cause context.",
        ),
    ],
)
def test_every_state_of_a_run_has_a_sentence(finding: RunFinding, said: str) -> None:
    assert state_finding(finding) == said


def test_outcomes_add_up_to_all_leaves() -> None:
    one = unit()
    scores = score_workflow(
        [one], list(rows({"a1": 10, "a2": 2, "b": "timeout"})), thresholds=SEVEN
    )
    found = leaf_outcomes(scores.judges[0])
    assert (found.passed, found.failed, found.whole, found.text) == (1, 2, 3, "3 leaves")
    assert dict(found.counts())["judge unscored"] == 1


def contender(
    name: str, passed: Sequence[int], judge: str = "j", *, first: int = 0, unscored: int = 0
) -> Contender:
    """A run of tasks numbered from `first`; `unscored` tasks before them have no score."""
    scored = tuple(map(str, range(first, first + len(passed))))
    tasks = (*map(str, range(first - unscored, first)), *scored)
    spec = RunSpec(
        dataset="workflow", mode="workflow", system=System(model="m", agent="a"), tasks=tasks
    )
    parts = {
        "root_sr": PartTable(
            ((task, 1), Part(value, 1)) for task, value in zip(scored, passed, strict=True)
        )
    }
    found = estimates(parts, tasks, epochs=1)["root_sr"]
    metrics = RunMetrics(name, judge, "workflow", spec, parts, frozenset())
    return Contender(name, metrics, found, {"another judge": judge})


def test_the_best_run_is_compared_task_by_task_with_every_other() -> None:
    best = contender("A", [1] * 30 + [0] * 2)
    close = contender("B", [1] * 29 + [0] * 3)
    far = contender("C", [1] * 5 + [0] * 27)
    other = contender("D", [1] * 32, judge="k")
    assert state_comparison([far, close, best, other]) == (
        "Of 3 runs with the same 32 scored tasks, A has the highest Root SR, 93.8. A is ahead of C "
        "on their 32 common tasks. A cannot be distinguished from B on their 32 common tasks; that "
        "does not make them equal. D cannot be compared with A: another judge."
    )


def test_a_run_with_other_tasks_is_ahead_only_on_the_common_ones() -> None:
    # The higher headline is from easy tasks that the other run does not have.
    easy = contender("A", [0] * 20 + [1] * 80)
    hard = contender("B", [1] * 14 + [0] * 6)
    assert easy.headline.value > hard.headline.value
    assert state_comparison([easy, hard]) == (
        "No two runs have the same scored tasks, so none has the highest Root SR. On their 20 "
        "common tasks B is ahead of A."
    )
    alike = contender("C", [0] * 20 + [1] * 79 + [0])
    said = state_comparison([hard, alike, easy])
    assert said.startswith("Of 2 runs with the same 100 scored tasks, A has the highest Root SR")


def test_equal_runs_share_the_highest_score() -> None:
    one, two, low = contender("A", [1] * 20), contender("B", [1] * 20), contender("C", [0] * 20)
    assert state_comparison([one, two]) == (
        "Of 2 runs with the same 20 scored tasks, A and B share the highest Root SR, 100.0."
    )
    assert state_comparison([low, one, two]) == (
        "Of 3 runs with the same 20 scored tasks, A and B share the highest Root SR, 100.0. A is "
        "ahead of C on their 20 common tasks."
    )


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (contender("B", [1] * 5, judge="k"), "another judge"),
        (contender("B", [1] * 5, first=50), "other tasks"),
        (contender("B", [1] * 5, first=50, unscored=50), "no common task is scored in both"),
    ],
)
def test_no_run_is_best_without_a_comparison(other: Contender, reason: str) -> None:
    assert state_comparison([contender("A", [0] * 5), other]) == (
        f"No run can be called the best. A cannot be compared with B: {reason}."
    )


def steps(finding: RunFinding, worst: Loss | None = None, **changes: Any) -> list[NextStep]:
    tasks = tuple(map(str, range(finding.n_units)))
    run = manifest(dataset="workflow", mode="workflow", dataset_digest="0", tasks=tasks, **changes)
    return list_next_steps("runs/a", run, finding, worst, judge="openai/x", gain="Root score")


def test_the_next_steps_begin_with_what_the_result_depends_on() -> None:
    worst = Loss("7", 2, "cp1: a title", 0.5, ("wrong content",))
    broken = FailureCount(cause="infrastructure", failures=3, tasks=1)
    found = steps(RunFinding("workflow", score(50), 6, 10, leaves(LOST, WRONG, broken)), worst)
    assert [one.command for one in found] == [
        "gta score runs/a --judge openai/x",
        "gta status runs/a",
        "",
    ]
    assert (found[2].task, found[2].epoch) == ("7", 2)
    assert found[2].text == (
        "Fixing its leaf “cp1: a title” alone would gain 0.50 points of Root score (wrong content)."
    )
    (first,) = steps(RunFinding("workflow", None, 3, 10, None))
    assert first.command == "gta score runs/a --judge MODEL"
    subset = steps(RunFinding("workflow", score(50), 10, 10, leaves()), dataset_tasks=132)
    assert subset[0].title == "Run all 132 tasks"
    imported = steps(
        RunFinding("workflow", score(50), 9, 10, leaves(broken)), imported_from="there"
    )
    assert imported[0].command == "gta import … --out RUN"
