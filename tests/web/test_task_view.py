from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.checks import CHECK, FileExists
from gta_bench.records.files import Deliverable
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.web.task_view import TaskView, format_tree, score_text, view_task
from tests.metrics.workflow_units import SEVEN, rows, unit


def view(one: WorkflowUnit, said: list[VerdictRow]) -> TaskView:
    scores = score_workflow([one], said, thresholds=SEVEN)
    return view_task(
        one,
        scores.judges[0],
        {row.key: row for row in said},
        leaf_threshold=7,
        root_threshold=7,
    )


def test_a_tree_is_text_with_scores_reasons_and_evidence() -> None:
    file = Deliverable(path="outputs/a.pdf", digest="0" * 64, size=1)
    said = list(rows({"a1": 10, "a2": 2, "b": 5}))
    verdict = Scored(value=10, reason="All\nthere.", used=("outputs/a.pdf", "page 2"))
    said[0] = said[0].model_copy(update={"verdict": verdict})
    one = unit("5", deliverables=(file,))
    assert format_tree(one, view(one, [row_of(row, "5") for row in said])) == (
        "Task 5: 4.33 by j, 3 of 3 leaves scored\n"
        "delivered outputs/a.pdf\n"
        "├─ a (weight 2): 4.00. \n"
        "│  ├─ a1: 10.00. first\n"
        "│  │     All there. [outputs/a.pdf, page 2]\n"
        "│  └─ a2 (weight 3): 2.00. second\n"
        "│        a2 is worth 2\n"
        "└─ b: 5.00. third\n"
        "      b is worth 5"
    )


def row_of(row: VerdictRow, task: str) -> VerdictRow:
    return row.model_copy(update={"key": row.key.model_copy(update={"task": task})})


def test_what_has_no_score_says_why() -> None:
    one = unit(epoch=1)
    broken = [*rows({"a1": "timeout", "a2": 7})]
    text = format_tree(one, view(one, broken))
    assert "Task 1: unscored by j, 1 of 3 leaves scored" in text
    assert "a1: unscored. first\n│  │     timeout" in text
    assert "b: unscored. third\n      not judged yet" in text
    assert "delivered nothing" in text


def test_states_follow_the_thresholds() -> None:
    root = view(unit(), list(rows({"a1": 7, "a2": 6.9, "b": "timeout"}))).root
    assert [leaf.state for leaf in (*root.children[0].children, root.children[1])] == [
        "passed",
        "failed",
        "unscored",
    ]
    assert (root.state, root.children[0].state) == ("unscored", "failed")


def test_every_repeat_is_shown() -> None:
    said = [*rows({"a1": 7, "a2": 8, "b": 9}), *rows({"a1": 5, "a2": 8, "b": 9}, repeat=2)]
    seen = view(unit(), said)
    assert [one.score for one in seen.root.children[0].children[0].verdicts] == [7, 5]


def test_scores_have_two_decimals() -> None:
    assert [score_text(value) for value in (7, 7.5, 4.333, 10.0, 0, None)] == [
        "7.00",
        "7.50",
        "4.33",
        "10.00",
        "0.00",
        "unscored",
    ]


def test_a_leaf_that_a_check_decided_says_what_the_check_found() -> None:
    """The tree of a judge had an empty reason for it: the row is stored under `check`."""
    exists = (FileExists(check="file.exists", file="a.csv"),)
    leaves = (Checkpoint(id="code", checks=exists, by="check"), Checkpoint(id="words"))
    task = WorkflowTask(
        id="1", request="Do it.", category=None, tools=(), attachments=(), checkpoints=leaves
    )
    found = Scored(value=0, reason="a.csv: found nothing, wanted a file")
    said = [
        VerdictRow(key=VerdictKey(task="1", leaf="code", judge=CHECK), verdict=found),
        *(
            VerdictRow(
                key=VerdictKey(task="1", leaf="words", judge="j", repeat=repeat),
                verdict=Scored(value=7, reason="Fine."),
            )
            for repeat in (1, 2)
        ),
    ]
    code, words = view(WorkflowUnit(task=task), said).root.children
    assert [one.reason for one in code.verdicts] == [found.reason]
    assert [one.reason for one in words.verdicts] == ["Fine.", "Fine."]
