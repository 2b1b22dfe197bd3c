import pytest

from gta_bench.metrics.checked import apply_checks, is_open_to_judge
from gta_bench.metrics.panel import pack_leaves
from gta_bench.metrics.workflow_scores import score_workflow
from gta_bench.records.checks import CHECK, FileExists
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from tests.metrics.workflow_units import SEVEN

EXISTS = (FileExists(check="file.exists", file="a.csv"),)
LEAVES = (
    Checkpoint(id="code", checks=EXISTS, by="check"),
    Checkpoint(id="both", checks=EXISTS, by="check-then-judge"),
    Checkpoint(id="words"),
    Checkpoint(id="beside", checks=EXISTS),
)


def unit() -> WorkflowUnit:
    task = WorkflowTask(
        id="1", request="Do it.", category=None, tools=(), attachments=(), checkpoints=LEAVES
    )
    return WorkflowUnit(task=task)


def row(leaf: str, judge: str, value: float | None, repeat: int = 1) -> VerdictRow:
    verdict = Unscored(cause="check_failed", detail="x") if value is None else Scored(value=value)
    key = VerdictKey(task="1", leaf=leaf, judge=judge, repeat=repeat)
    return VerdictRow(key=key, verdict=verdict)


def leaf_scores(*rows: VerdictRow, judge: str) -> dict[str, tuple[float | None, str | None]]:
    table = score_workflow([unit()], rows, thresholds=SEVEN).table(judge)
    assert table is not None
    return {leaf.leaf: (leaf.value, leaf.by) for leaf in table.tasks[0].leaves}


def test_checks_have_a_table_of_their_own_only_without_a_judge() -> None:
    checks = [row("code", CHECK, 10), row("both", CHECK, 0), row("beside", CHECK, 10)]
    assert leaf_scores(*checks, judge=CHECK) == {
        "code": (10, CHECK), "both": (0, CHECK), "words": (None, None), "beside": (None, None),
    }  # fmt: skip
    scores = score_workflow([unit()], [*checks, row("words", "j", 5)], thresholds=SEVEN)
    assert [table.judge for table in scores.judges] == ["j"]
    assert scores.judges[0].checked == 2


def test_a_check_that_holds_leaves_the_leaf_to_the_judge() -> None:
    rows = [row("code", CHECK, 10), row("both", CHECK, 10), row("both", "j", 4),
            row("words", "j", 5), row("beside", "j", 6), row("code", "j", 0)]  # fmt: skip
    assert leaf_scores(*rows, judge="j") == {
        "code": (10, CHECK), "both": (4, None), "words": (5, None), "beside": (6, None),
    }  # fmt: skip


def test_a_check_that_broke_leaves_the_leaf_unscored() -> None:
    rows = [row("code", CHECK, None), row("both", CHECK, None), row("both", "j", 9)]
    scores = score_workflow([unit()], rows, thresholds=SEVEN)
    code, both, words, _ = scores.judges[0].tasks[0].leaves
    assert (code.value, code.causes) == (both.value, both.causes) == (None, ("check_failed",))
    assert words.causes == ("not judged yet",) and scores.judges[0].tasks[0].root is None
    assert scores.judges[0].checked == 0, "a broken check decides nothing"


def test_every_repeat_of_a_judge_gets_the_verdict() -> None:
    rows = [row("code", CHECK, 10), row("words", "j", 4), row("words", "j", 6, repeat=2)]
    assert leaf_scores(*rows, judge="j")["code"] == (10, CHECK)
    assert leaf_scores(*rows, judge="j")["words"] == (5, None)


def test_a_task_without_checks_is_scored_as_before() -> None:
    plain = unit().model_copy(
        update={"task": unit().task.model_copy(update={"checkpoints": LEAVES[2:3]})}
    )
    rows = [row("words", "j", 5)]
    assert apply_checks(plain, rows, {"j": 1}) == rows


@pytest.mark.parametrize(
    ("leaf", "value", "open_"),
    [(0, 10, False), (0, 0, False), (1, 10, True), (1, 9, False), (1, None, False), (2, 0, True)],
)
def test_who_decides(leaf: int, value: float | None, open_: bool) -> None:
    assert is_open_to_judge(LEAVES[leaf], row("x", CHECK, value)) is open_


def test_a_leaf_that_was_not_checked_yet_is_not_given_to_the_judge() -> None:
    assert [is_open_to_judge(leaf, None) for leaf in LEAVES] == [False, False, True, True]


def test_a_gate_is_no_rater_beside_the_judge() -> None:
    """A check that held and a judge that failed the leaf were reported as a disagreement."""
    judged = [row("both", "j", 2), row("beside", "j", 6)]
    kept = [row("code", CHECK, 10), row("beside", CHECK, 0)]
    found = pack_leaves([[row("both", CHECK, 10), *kept, *judged]], [unit()])
    assert [leaf for _, _, leaf in found.places()] == ["code", "beside", "both"]
    assert {judge: [*column] for judge, column in found.columns.items()} == {
        CHECK: [[10], [0], []],
        "j": [[], [6], [2]],
    }
    assert [*pack_leaves([judged], iter([unit()])).columns["j"]] == [[2], [6]]
