import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from gta_bench.datasets.model import WorkflowDataset
from gta_bench.datasets.upstream import (
    NOT_KEPT,
    WorkflowPrediction,
    call_records,
    read_workflow_predictions,
    read_workflow_trace,
)
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError
from gta_bench.metrics.compat.workflow import node_score, tree_root
from gta_bench.records.calls import STATED
from gta_bench.records.steps import AnswerStep, CallStep, ReplyStep
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.verdicts import Scored, Unscored
from tests.builders import PNG, call, workflow_task, write_json, write_workflow

FOLDER = Path("predictions") / "workflow_gemini25pro_lagent_20"


@pytest.fixture(scope="module")
def stored(data_dir: Path, workflow_dir: Path) -> tuple[WorkflowPrediction, ...]:
    """The 20 tasks whose results are stored."""
    return read_workflow_predictions(data_dir / FOLDER, load_workflow(workflow_dir))


def test_the_stored_leaf_scores_give_the_stored_root_in_all_20_tasks(
    stored: tuple[WorkflowPrediction, ...],
) -> None:
    assert len(stored) == 20
    for one in stored:
        scores = {
            row.key.leaf: row.verdict.value if isinstance(row.verdict, Scored) else row.compat or 0
            for row in one.verdicts
        }
        assert node_score(tree_root(one.task.checkpoints), scores) == one.root


def test_the_63_scores_from_replies_that_were_not_kept_are_none(
    stored: tuple[WorkflowPrediction, ...],
) -> None:
    rows = [row for one in stored for row in one.verdicts]
    guessed = [row for row in rows if isinstance(row.verdict, Unscored)]
    assert (len(rows), len(guessed)) == (229, 63)
    assert {row.verdict.cause for row in guessed if isinstance(row.verdict, Unscored)} == {NOT_KEPT}
    assert all(row.compat is not None for row in guessed)


def test_the_tasks_own_inputs_are_no_deliverables(stored: tuple[WorkflowPrediction, ...]) -> None:
    by_task = {one.task.id: one for one in stored}
    assert [file.name for file in by_task["111"].files] == ["02_20260519_c430.png"]
    assert [path for path, _ in by_task["111"].inputs] == ["inputs/111.png"]
    assert sum(len(one.files) for one in stored) == 21


def test_failed_calls_and_crash_texts_are_what_they_are(
    stored: tuple[WorkflowPrediction, ...],
) -> None:
    calls = [record for one in stored for record in one.calls]
    assert (len(calls), sum(record.status == "error" for record in calls)) == (109, 7)
    crashed = next(one for one in stored if one.task.id == "61")
    assert isinstance(crashed.trace[-1], AnswerStep)
    assert WorkflowUnit(task=crashed.task, trace=crashed.trace).answer == ""


def prediction(*steps: Any) -> dict[str, Any]:
    return {"0": {"prediction": [list(steps)], "gold": [[]]}}


def scores(*nodes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"details": [{"score": 5, "nodes": list(nodes)}], **changes}


NODES = [
    {"id": "cp1-1", "score": 10, "analysis": "good"},
    {"id": "cp1-2", "score": 0, "analysis": "parse failed"},
]
FAILED_CALL = {"role": "tool", "content": {"args": {}, "error": {"type": "API", "msg": "down"}}}


@pytest.fixture
def dataset(tmp_path: Path) -> WorkflowDataset:
    files = [{"path": "a.png", "type": None, "url": None}, {"path": "gone.png"}]
    root = write_workflow(
        tmp_path / "data", {"5": workflow_task(files=files), "6": workflow_task()}
    )
    (root / "a.png").write_bytes(PNG)
    return load_workflow(root)


def write(folder: Path, steps: Any, stored: Any = None) -> Path:
    (folder / "task5" / "attachments").mkdir(parents=True)
    (folder / "task5" / "attachments" / "made.png").write_bytes(PNG + b"!")
    write_json(folder / "task5" / "prediction.json", steps)
    if stored is not None:
        write_json(folder / "task5" / "official_rescore_result.json", stored)
    return folder


def test_a_folder_becomes_trace_calls_files_and_verdicts(
    dataset: WorkflowDataset, tmp_path: Path
) -> None:
    steps = prediction(call("OCR", {}), FAILED_CALL, {"role": "assistant", "content": "Done."})
    source = write(tmp_path / "results", steps, scores(*NODES))
    first, second = read_workflow_predictions(source, dataset)
    assert isinstance(first.trace[0], CallStep)
    assert first.trace[0].error is not None
    assert first.calls[0].message == "down"
    assert {call.backend for call in first.calls} == {STATED}
    assert [file.name for file in first.files] == ["made.png"]
    assert [path for path, _ in first.inputs] == ["inputs/a.png"]
    assert isinstance(first.verdicts[1].verdict, Unscored)
    assert (second.trace, second.verdicts, second.root) == ((), (), None)


def test_results_that_were_not_judged_have_no_verdicts(
    dataset: WorkflowDataset, tmp_path: Path
) -> None:
    first, _ = read_workflow_predictions(write(tmp_path / "results", prediction()), dataset)
    assert (first.trace, first.verdicts, first.root) == ((), (), None)


@pytest.mark.parametrize(
    ("steps", "stored", "problem"),
    [
        ({}, None, "one entry with one trace"),
        ({"0": {"prediction": []}}, None, "one entry with one trace"),
        ({"0": []}, None, "one entry with one trace"),
        (prediction(7), None, "A step is an object"),
        (prediction(call("OCR", {}) | {"tool_calls": []}), None, "at least one call"),
        (prediction(), {"details": []}, "scores of 0 tasks"),
        (prediction(), scores(NODES[0]), "not those of the dataset"),
        (prediction(), {"details": 3}, "valid list"),
    ],
)
def test_a_broken_file_is_met_by_its_place(
    dataset: WorkflowDataset, tmp_path: Path, steps: Any, stored: Any, problem: str
) -> None:
    source = write(tmp_path / "results", json.loads(json.dumps(steps)), stored)
    with pytest.raises(DatasetError, match=problem) as caught:
        read_workflow_predictions(source, dataset)
    assert caught.value.task == "5"


def test_a_folder_without_tasks_is_refused(dataset: WorkflowDataset, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no `task<ID>` folder"):
        read_workflow_predictions(tmp_path, dataset)


@pytest.mark.parametrize("ids", [("c0", "c1"), ("c1", "c0"), (None, None)])
def test_calls_of_one_step_are_joined_with_their_replies(ids: tuple[str | None, ...]) -> None:
    """Steps with two calls refused the whole pack; ids join them, else their order does."""
    calls: list[JsonValue] = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": {}}}
        for name in ("c0", "c1")
    ]
    replies: list[JsonValue] = [
        {"role": "tool", "tool_call_id": one, "content": f"of {one or place}"}
        for place, one in zip(("c0", "c1"), ids, strict=True)
    ]
    answer: JsonValue = {"role": "assistant", "content": "Done."}
    trace = read_workflow_trace([{"role": "assistant", "tool_calls": calls}, *replies, answer])
    assert [step.name for step in trace if isinstance(step, CallStep)] == ["c0", "c1"]
    assert [step.step for step in trace] == ["call", "reply", "call", "reply", "answer"]
    assert [step.parts[0].content for step in trace if isinstance(step, ReplyStep)] == [
        "of c0",
        "of c1",
    ]
    assert [call.status for call in call_records(trace)] == ["done", "done"]
