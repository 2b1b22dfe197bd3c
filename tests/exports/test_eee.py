"""Records of Every Eval Ever, validated with the structure of its own schemas."""

import json
import shutil
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from gta_bench.cli import app
from gta_bench.exports.eee_samples import format_sample
from gta_bench.exports.unit_scores import OneScore
from gta_bench.records.checks import CHECK
from gta_bench.records.gate import GatePlan
from gta_bench.records.scores import UnscoredUnit
from gta_bench.records.steps import (
    AnswerStep,
    CallStep,
    MalformedStep,
    ReplyPart,
    ReplyStep,
    StepError,
    ThoughtStep,
    write_trace,
)
from gta_bench.records.units import WorkflowUnit
from gta_bench.records.workflow import WorkflowTask
from gta_bench.runs.directory import read_workflow_scores, write_gate_plan, write_scores
from tests.builders import atomic_task, write_atomic

SCHEMAS = Path(__file__).parent / "every_eval_ever"
OPTIONS = ("--organization", "Some Lab", "--model-id", "some/model-1")


def validate(value: Any, name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    problems = [
        f"{one.json_path}: {one.message}" for one in Draft7Validator(schema).iter_errors(value)
    ]
    assert not problems


def export(run: Path, out: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["export", "eee", str(run), "--out", str(out), *options])


def read(out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    [record] = out.rglob("*.json")
    [samples] = out.rglob("*.jsonl")
    found = json.loads(record.read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    validate(found, "eval")
    for line in lines:
        validate(line, "instance_level_eval")
    about = found["detailed_evaluation_results"]
    assert out / about["file_path"] == samples
    assert about["checksum"] == sha256(samples.read_bytes()).hexdigest()
    assert about["total_rows"] == len(lines)
    return found, lines


def test_a_record_has_scores_intervals_and_samples(judged: Path, tmp_path: Path) -> None:
    result = export(judged, tmp_path, *OPTIONS)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "with 2 samples" in result.output
    record, samples = read(tmp_path)
    assert record["evaluation_id"].startswith("gta-workflow-own/some_model-1/")
    assert record["model_info"]["id"] == "some/model-1"
    assert record["source_metadata"]["source_organization_name"] == "Some Lab"
    results = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    assert {*results} >= {
        "gta-workflow-own/root_score/scripted",
        "gta-workflow-own/root_sr/scripted",
        "gta-workflow-own/leaf_sr/scripted",
    }
    root = results["gta-workflow-own/root_score/scripted"]
    scores = read_workflow_scores(judged).judges[0].strict
    assert root["score_details"]["score"] == pytest.approx(scores.root_score)
    assert root["source_data"]["dataset_name"] == "own tasks in the format of GTA-Workflow"
    assert "not the released 132" in root["score_details"]["details"]["remarks"]
    assert root["metric_config"]["max_score"] == 10
    details = root["metric_config"]["additional_details"]
    assert details["is_correct"] == "root score of at least 7"
    generation = root["generation_config"]["generation_args"]["agentic_eval_config"]
    assert generation["additional_details"]["agent"] == "toolcalling"
    [judge] = root["metric_config"]["llm_scoring"]["judges"]
    assert judge["model_info"]["name"] == "scripted"
    leaves = results["gta-workflow-own/leaf_sr/scripted"]["score_details"]
    assert leaves["score"] == pytest.approx(100 / 3)
    interval = leaves["uncertainty"]["confidence_interval"]
    assert 0 <= interval["lower"] < leaves["score"] < interval["upper"] <= 100
    first = samples[0]
    assert (
        first["evaluation_result_id"] in results
        and first["evaluation_id"] == record["evaluation_id"]
    )
    assert [one["role"] for one in first["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert first["evaluation"] == {
        "score": pytest.approx(root["score_details"]["score"]),
        "is_correct": False,
        "num_turns": 2,
        "tool_calls_count": 1,
    }
    assert first["input"]["reference"] == []
    assert first["metadata"] == {"epoch": "1", "cp1-1": "10", "cp1-2": "3", "cp2": "3"}
    [answer] = first["answer_attribution"]
    assert (answer["turn_idx"], answer["extracted_value"]) == (3, "Done.")


def test_exporting_again_replaces_the_record(judged: Path, tmp_path: Path) -> None:
    assert export(judged, tmp_path, *OPTIONS).exit_code == 0
    first, _ = read(tmp_path)
    assert export(judged, tmp_path, *OPTIONS).exit_code == 0
    assert read(tmp_path)[0]["evaluation_id"] == first["evaluation_id"]


def test_checks_are_no_judge_model(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    scores = read_workflow_scores(run)
    checked = tuple(one.model_copy(update={"judge": CHECK}) for one in scores.judges)
    write_scores(run, scores.model_copy(update={"judges": checked}))
    assert export(run, tmp_path / "out", *OPTIONS).exit_code == 0
    record, _ = read(tmp_path / "out")
    assert not any("llm_scoring" in one["metric_config"] for one in record["evaluation_results"])


def test_a_run_that_a_gate_stopped_is_not_exported(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    plan = GatePlan(
        created=datetime.now(UTC),
        base="0" * 32,
        metric="root_sr",
        margin=10,
        epochs=1,
        seed="x",
        tasks=("1", "2", "3"),
    )
    write_gate_plan(run, plan)
    result = export(run, tmp_path / "out", *OPTIONS)
    assert "only as far as a sequential gate needed" in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_a_unit_without_a_score_has_no_sample(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    lost = UnscoredUnit(task="2", epoch=1, cause="the server went away")
    write_scores(run, read_workflow_scores(run).model_copy(update={"unscored": (lost,)}))
    result = export(run, tmp_path / "out", *OPTIONS)
    assert "1 score missing" in result.output
    _, samples = read(tmp_path / "out")
    assert [one["sample_id"] for one in samples] == ["1"]


def test_a_model_without_a_developer_is_unknown(judged: Path, tmp_path: Path) -> None:
    for model in ("plain", "../../etc/x", "a/../b", "a/b/c", "a/.b"):
        wrong = export(judged, tmp_path / "out", "--organization", "x", "--model-id", model)
        assert "developer/name" in str(wrong.exception)
    assert export(judged, tmp_path / "out", "--organization", "x").exit_code == 0
    record, _ = read(tmp_path / "out")
    assert record["model_info"]["id"] == "mockllm/model"


def test_every_step_is_a_message_and_arguments_are_texts() -> None:
    trace = (
        ThoughtStep(content="Let me see."),
        CallStep(name="Plot", arguments={"n": 3, "title": "x"}),
        ReplyStep(parts=(ReplyPart(type="image", content="outputs/a.png"),)),
        CallStep(name="OCR", arguments="{broken", error=StepError(type="ARGS_ERROR")),
        MalformedStep(content="", reason="empty"),
        AnswerStep(content="Here."),
    )
    task = WorkflowTask(
        id="1", request="Do it.", category=None, tools=(), attachments=(), checkpoints=()
    )
    unit = WorkflowUnit(task=task, trace=trace)
    main = OneScore(name="root_score", value=8.0, passed=True)
    missing = OneScore(name="leaf_score", leaf="a", cause="timeout")
    found = format_sample(unit, main, [missing])
    ids = dict.fromkeys(("schema_version", "evaluation_id", "model_id", "evaluation_name"), "x")
    validate({**ids, **found}, "instance_level_eval")
    messages: Any = found["messages"]
    assert [one["turn_idx"] for one in messages] == list(range(8))
    calls = [one["tool_calls"][0] for one in messages if "tool_calls" in one]
    assert [call["arguments"] for call in calls] == [
        {"n": "3", "title": "x"},
        {"raw": "{broken"},
    ]
    replies = [(one["tool_call_id"], one["content"]) for one in messages if one["role"] == "tool"]
    assert replies == [(["call_1"], "outputs/a.png"), (["call_2"], "ARGS_ERROR")]
    assert found["metadata"] == {"epoch": "1", "a": "no score: timeout"}


def test_an_atomic_run_has_its_tools(tmp_path: Path) -> None:
    data = write_atomic(tmp_path / "data", {"0": atomic_task()})
    steps = [write_trace((AnswerStep(content="7"),))]
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps({"0": {"prediction": steps, "gold": steps}}))
    run = tmp_path / "run"
    options = ["--mode", "end-to-end", "--data", str(data), "--out", str(run), "--model", "m"]
    for command in (["import", "opencompass", str(file), *options], ["score", str(run)]):
        assert CliRunner().invoke(app, command).exit_code == 0
    assert export(run, tmp_path / "out", "--organization", "x").exit_code == 0
    record, [sample] = read(tmp_path / "out")
    assert record["model_info"]["id"] == "unknown/m"
    results = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
    found = results[sample["evaluation_result_id"]]
    assert sample["evaluation_result_id"] == "gta-atomic-end-to-end-own/ans_acc_i"
    assert found["score_details"]["score"] == sample["evaluation"]["score"] == 100
    [tool] = found["generation_config"]["generation_args"]["agentic_eval_config"]["available_tools"]
    assert tool == {"name": "OCR", "description": "What OCR does."}
