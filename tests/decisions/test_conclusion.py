"""The first sentence of a comparison: what somebody who is no statistician would take from it."""

from gta_bench.decisions.comparison import (
    MeasuredPair,
    compare,
    correct_tests,
    find_differences,
)
from gta_bench.decisions.comparison_tables import comparison_remarks, state_conclusion
from gta_bench.records.checks import CHECK
from gta_bench.records.comparison import ComparedRun, Comparison
from gta_bench.records.workflow_scores import WorkflowScores
from gta_bench.reports.estimates import Part, pair_tasks
from tests.metrics.test_comparability import judged, later


def compared(
    *judges: tuple[str, str], others: int = 0, left_out: tuple[str, ...] = ()
) -> Comparison:
    """Each judge's outcomes of A and B, task by task: `+`, `-`, or `?` if missing.

    `others` are as many further pairs of runs, without any difference.
    """
    measured, pairs = [], []
    for number, sides in enumerate(judges):
        first, second = (
            {
                (str(task), 1): Part(float(one == "+"), float(one != "?"), float(one == "?"))
                for task, one in enumerate(own)
            }
            for own in sides
        )
        measured.append(MeasuredPair(f"Root SR, j{number}", "primary", first, second))
        tasks = [str(task) for task in range(len(sides[0]))]
        pairs.append(pair_tasks(first, second, tasks, epochs=(1, 1)))
    found = find_differences(measured, pairs)
    equal = found[0].model_copy(update={"p_value": 1.0, "envelope": None})
    metrics = correct_tests([found, *[(equal,)] * others])[0]
    return Comparison(
        first="a",
        second="b",
        tasks=max(one.difference.n for one in metrics),
        left_out=left_out,
        one_sided=left_out,
        cautions=(),
        metrics=metrics,
        took=(),
        per_dollar=(None, None),
        tools=(),
    )


def test_the_leader_and_its_score_stand_first() -> None:
    said = state_conclusion(compared(("-" * 20, "+" * 10 + "-" * 10)))
    assert said.startswith("B is ahead of A in Root SR, j0: 50.0 against 0.0 on 20 tasks. The true")


def test_a_lead_that_missing_tasks_cannot_turn_is_given_with_what_they_leave_open() -> None:
    found = compared(("+" * 40 + "?" * 3 + "-" * 17, "-" * 60))
    assert state_conclusion(found).startswith("A is ahead of B in Root SR, j0: 70.2 against 0.0")
    assert "A - B is anywhere from +66.7 to +71.7." in state_conclusion(found)
    remarks = " ".join(comparison_remarks(found))
    assert "3 tasks lack a score or a part of it in one run or both" in remarks
    assert "The lead of A stays whatever their scores are." in remarks
    assert "chance" not in remarks


def test_missing_tasks_that_decide_are_counted() -> None:
    said = state_conclusion(compared(("+" * 7 + "-" * 20, "-" * 25 + "??")))
    assert said.startswith("Nothing can be concluded: A looks ahead in Root SR, j0 (28.0 against")
    assert (
        "2 tasks lack a score or a part of it. The lead of A stays whatever their scores are"
        in said
    )
    assert "but it could be chance" in said
    gone = state_conclusion(compared(("+" * 10 + "-" * 20, "-" * 18 + "?" * 12)))
    assert "The lead of A is gone if" in gone and "of the 12 such tasks go against it" in gone


def test_judges_that_disagree_decide_nothing() -> None:
    ahead, behind = ("+" * 10 + "-" * 10, "-" * 20), ("-" * 20, "+" * 10 + "-" * 10)
    assert state_conclusion(compared(ahead, ahead)).endswith("All 2 judges agree.")
    for other, says in ((behind, "Root SR, j1 has B ahead"), (("-" * 20,) * 2, "cannot tell")):
        said = state_conclusion(compared(ahead, other))
        assert said.startswith("Nothing can be concluded, as the judges disagree: Root SR, j0 has")
        assert says in said


def test_tasks_that_only_one_run_was_given_are_in_the_sentence() -> None:
    found = compared(("+" * 10, "-" * 10), left_out=tuple(map(str, range(100, 200))))
    assert "100.0 against 0.0 on 10 tasks of the 110 that A or B was given" in state_conclusion(
        found
    )
    assert any(
        "100 tasks are left out (part of one run" in one for one in comparison_remarks(found)
    )


def test_six_tasks_are_too_few_and_so_it_is_said() -> None:
    assert state_conclusion(compared(("+" * 6, "-" * 6))).startswith(
        "Too few tasks to conclude anything"
    )
    assert state_conclusion(compared(("+" * 7, "-" * 7))).startswith("A is ahead of B")


def test_a_no_says_what_could_have_been_shown() -> None:
    said = state_conclusion(compared(("+-" * 15, "-+" * 15)))
    assert said.startswith("A and B cannot be told apart in Root SR, j0: 50.0 against 50.0")
    assert "would be found in four of five such comparisons, a smaller one less often" in said


def test_a_lead_among_many_comparisons_could_be_chance() -> None:
    said = state_conclusion(compared(("+" * 7 + "-" * 20, "-" * 27), others=9))
    assert said.startswith("A looks ahead of B") and "number of comparisons" in said


def checked() -> ComparedRun:
    run = judged()
    assert isinstance(run.scores, WorkflowScores)
    tables = tuple(one.model_copy(update={"judge": CHECK}) for one in run.scores.judges)
    scores = run.scores.model_copy(update={"judges": tables})
    return run.model_copy(update={"scores": scores, "judge_prompts": {}})


def test_nothing_is_said_of_evidence_for_checks_which_are_shown_none() -> None:
    said = [
        [one for one in comparison_remarks(*compare([run, later(run)])) if "evidence" in one]
        for run in (judged(), checked())
    ]
    assert said == [["evidence for j: not recorded for both runs."], []]
