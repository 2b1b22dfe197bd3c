"""How large records print, and what needs a package that is not installed."""

import sys
from typing import Any

import pytest

from gta_bench.errors import EnvironmentProblem
from gta_bench.records import views
from gta_bench.records.atomic import AtomicTask, FreeTextAnswer
from gta_bench.records.calls import CallRecord
from gta_bench.records.comparison import ComparedRun
from gta_bench.records.dialogue import UserTurn
from gta_bench.records.failures import Failure
from gta_bench.records.files import Attachment
from gta_bench.records.run import RunSpec, System
from gta_bench.records.scores import (
    Measured,
    RunScores,
    StepCounts,
    StepScores,
    StrictStepCounts,
    StrictStepScores,
    UnitScore,
    UnscoredUnit,
)
from gta_bench.records.steps import AnswerStep
from gta_bench.records.tools import ToolSpec
from gta_bench.records.units import AtomicUnit, Usage
from gta_bench.records.verdicts import Scored, Unscored, VerdictKey, VerdictRow
from gta_bench.records.workflow import Checkpoint, WorkflowTask
from gta_bench.records.workflow_scores import (
    CompatScore,
    GroupScores,
    JudgeScores,
    TaskScore,
    WorkflowScores,
)
from tests.builders import manifest

TASK = AtomicTask(
    id="receipt",
    tools=(ToolSpec(name="OCR"), ToolSpec(name="OCR")),
    attachments=(Attachment(path="inputs/a.png", source="image/a.png"),),
    dialogue=(UserTurn(content=f"How much\nis {'very ' * 40}it?"),),
    answer=None,
)
LONG_TASK = WorkflowTask(
    id="sales",
    request="Write a report.",
    category="shop",
    tools=("Plot",),
    attachments=(),
    checkpoints=(Checkpoint(id="a", children=(Checkpoint(id="b"), Checkpoint(id="c"))),),
)
COUNTS: dict[str, Any] = {
    **{"inst_hits": 1, "inst_total": 2, "call_total": 1, "tool_hits": 1, "arg_hits": 0},
    **{"answer_total": 1, "answer_sum": 0.5, "tool_call": 1, "tool_call_error": 0},
}
VALUES: dict[str, Any] = {
    **{"inst_acc": 50.0, "tool_acc": 100.0, "arg_acc": 0.0, "summ_acc": None},
    **{"tool_call": 1, "tool_call_error": 0, "n": 1, "n_tasks": 2},
}
SCORES = RunScores(
    scoring_version=1,
    mode="step",
    similarity="exact-or-half",
    comparable=False,
    n=1,
    n_units=2,
    strict=StrictStepScores(**VALUES, arg_typed=0.0, malformed=0),
    compat=StepScores(**VALUES),
    usage=Usage(),
    models=(),
    units=(
        UnitScore(
            task="receipt",
            epoch=1,
            strict=StrictStepCounts(**COUNTS, predicted=True, arg_typed_sum=0.0, malformed=0),
            compat=StepCounts(**COUNTS),
        ),
    ),
    unscored=(UnscoredUnit(task="chart", epoch=1, cause="not run"),),
    failures=(Failure(task="receipt", epoch=1, place="step 2", cause="wrong tool"),),
)
GROUP = GroupScores(
    name="all", root_score=7.5, root_sr=None, leaf_sr=90.0, n=1, n_units=2, leaves=4, n_leaves=8
)
JUDGE = JudgeScores(
    judge="m/judge",
    repeats=1,
    strict=GROUP,
    compat=CompatScore(root_score=7.0, n=1),
    categories=(),
    kinds=(),
    tool_categories=(),
    curve=(),
    usage=Usage(),
    tasks=(
        TaskScore(
            task="sales",
            epoch=1,
            category="shop",
            kinds=("pdf",),
            tool_categories=(),
            root=7.5,
            compat=7.0,
            leaves=(),
        ),
    ),
)
WORKFLOW = WorkflowScores(
    scoring_version=1,
    leaf_threshold=6,
    root_threshold=6,
    n=1,
    n_units=2,
    tool_sr=None,
    tools=(),
    usage=Usage(),
    models=(),
    judges=(JUDGE,),
    unscored=(UnscoredUnit(task="picnic", epoch=1, cause="not run"),),
)
KEY = VerdictKey(task="sales", leaf="b", judge="m/judge")
SPEC = RunSpec(
    dataset="atomic", mode="step", system=System(model="m/x", agent="react"), tasks=("a", "b")
)


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            TASK,
            "<AtomicTask receipt: 'How much is very very very very very very very very very ve…', "
            "2 tools, 1 file, 0 steps>",
        ),
        (LONG_TASK, "<WorkflowTask sales: 'Write a report.', 1 tool, 0 files, 2 leaves>"),
        (
            AtomicUnit(
                task=TASK,
                trace=(AnswerStep(content="42"),),
                calls=(CallRecord(tool="OCR", status="done", seconds=0.1),),
            ),
            "<AtomicUnit receipt.1: 1 step, 1 tool call, 0 deliverables, answer '42'>",
        ),
        (
            AtomicUnit(task=TASK, failure="The server is down."),
            "<AtomicUnit receipt.1: no result, 'The server is down.'>",
        ),
        (
            VerdictRow(key=KEY, verdict=Scored(value=7.5, reason="Nearly.")),
            "<VerdictRow sales.1 b by m/judge: 7.5, 'Nearly.'>",
        ),
        (
            VerdictRow(key=KEY, verdict=Unscored(cause="timeout")),
            "<VerdictRow sales.1 b by m/judge: no score, timeout>",
        ),
        (SPEC, "<RunSpec m/x · react on atomic step: 2 tasks, 1 epoch>"),
        (
            SPEC.model_copy(update={"system": System(model="none/none", agent="gold")}),
            "<RunSpec gold on atomic step: 2 tasks, 1 epoch>",
        ),
        (
            SPEC.model_copy(
                update={
                    "dataset": "workflow",
                    "mode": "workflow",
                    "system": System(model="m/x", agent="harness", harness="codex"),
                }
            ),
            "<RunSpec m/x · codex on workflow: 2 tasks, 1 epoch>",
        ),
        (
            SCORES,
            "<RunScores step, 1 of 2 units: strict inst_acc 50.00, tool_acc 100.00, arg_acc 0.00, "
            "summ_acc -; compat inst_acc 50.00, tool_acc 100.00, arg_acc 0.00, summ_acc ->",
        ),
        (
            WORKFLOW,
            "<WorkflowScores 1 of 2 units, tool_sr -; m/judge, 1 of 2 units: root_score 7.50, "
            "root_sr -, leaf_sr 90.00>",
        ),
        (
            WORKFLOW.model_copy(update={"judges": ()}),
            "<WorkflowScores 1 of 2 units, tool_sr -; no judge yet>",
        ),
        (
            Measured(name="turns", value=2.0, n=1, n_units=2, units={"a.b.1": 2.0}),
            "<Measured turns 2.00 over 1 of 2 units>",
        ),
    ],
)
def test_a_large_record_prints_in_a_line(record: views.Displayed, line: str) -> None:
    assert repr(record) == str(record) == f"{record}" == line


def test_a_run_prints_what_and_when() -> None:
    run = manifest(system=System(model="m/x", agent="react"))
    when = f"{run.created:%Y-%m-%d %H:%M}"
    assert repr(run) == f"<RunManifest {run.spec.describe()}, {when}>"
    compared = ComparedRun(name="runs/a", manifest=run, scores=SCORES, units={})
    assert repr(compared) == f"<ComparedRun runs/a: {run.describe()}>"


def test_the_rows_of_scores_have_every_unit() -> None:
    scored, missing = SCORES.rows()
    assert (scored["task"], scored["failure"], scored["strict_answer_sum"]) == (
        "receipt",
        None,
        0.5,
    )
    assert scored["compat_image_sum"] is None and scored["first_causes"] == ["wrong tool"]
    assert missing == {"task": "chart", "epoch": 1, "failure": "not run", "first_causes": []}
    scored, missing = WORKFLOW.rows()
    assert (scored["judge"], scored["root"], scored["compat"]) == ("m/judge", 7.5, 7.0)
    assert missing == {"task": "picnic", "epoch": 1, "judge": None, "failure": "not run"}


def test_the_rows_of_a_metric_name_task_and_epoch() -> None:
    found = Measured(name="turns", value=2.0, n=1, n_units=1, units={"a.b.1": 2.0})
    assert found.rows() == [{"task": "a.b", "epoch": 1, "metric": "turns", "value": 2.0}]


def test_the_rows_of_tasks_and_verdicts() -> None:
    assert TASK.row()["tools"] == ["OCR"] and TASK.row()["answer"] == "image"
    text = TASK.model_copy(update={"answer": FreeTextAnswer(references=("a",))})
    assert text.row()["answer"] == "free_text"
    assert LONG_TASK.row()["leaves"] == 2
    scored = VerdictRow(key=KEY, verdict=Scored(value=7.5, reason="Nearly."), compat=7.0).row()
    assert (scored["value"], scored["cause"], scored["reason"]) == (7.5, None, "Nearly.")
    unscored = VerdictRow(key=KEY, verdict=Unscored(cause="timeout")).row()
    assert (unscored["value"], unscored["cause"], unscored["reason"]) == (None, "timeout", None)
    assert list(scored)[:9] == [
        *("task", "epoch", "leaf", "judge", "repeat", "value", "cause", "compat", "reason")
    ]


def test_without_pandas_and_polars_a_frame_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EnvironmentProblem, match=r"needs pandas or polars.*pip install pandas$"):
        SCORES.to_frame()


def test_html_is_the_business_of_who_renders_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_renderers", [])
    assert SCORES._repr_html_() is None
    views.use_renderer(lambda one: f"<b>{type(one).__name__}</b>")
    assert SCORES._repr_html_() == "<b>RunScores</b>"
