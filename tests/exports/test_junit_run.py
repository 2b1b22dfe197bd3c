"""Scores of a run as JUnit XML, read back by junitparser."""

import json
import shutil
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from junitparser import Error, Failure, JUnitXml, Skipped

from gta_bench.cli import app
from gta_bench.exports.unit_scores import UnitScores
from gta_bench.records.scores import UnscoredUnit
from gta_bench.records.steps import AnswerStep, CallStep, write_trace
from gta_bench.records.verdicts import Unscored, VerdictKey, VerdictRow
from gta_bench.runs.directory import read_workflow_scores, write_scores
from gta_bench.runs.scoring import score_workflow_run
from gta_bench.runs.verdicts import append_verdicts
from gta_bench.settings import Settings
from tests.builders import atomic_task, write_atomic

TRACE = (CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"}), AnswerStep(content="7"))
WRONG = (AnswerStep(content="eight"),)


def gta(*command: str) -> Result:
    return CliRunner().invoke(app, command)


def read(file: Path) -> dict[tuple[str, str], Any]:
    (suite,) = JUnitXml.fromfile(str(file))
    return {(case.classname, case.name): case for case in suite}


def test_tasks_and_leaves_are_cases(judged: Path, tmp_path: Path) -> None:
    file = tmp_path / "gta.xml"
    result = gta("export", "junit", str(judged), "--out", str(file))
    assert result.exit_code == 0, result.output
    cases = read(file)
    assert [*cases][:4] == [
        ("gta workflow", "1"),
        *(("gta workflow 1", leaf) for leaf in ("cp1-1", "cp1-2", "cp2")),
    ]
    assert len(cases) == 8
    task, leaf = cases["gta workflow", "1"], cases["gta workflow 1", "cp1-2"]
    assert cases["gta workflow 1", "cp1-1"].is_passed
    [failure] = task.result
    assert isinstance(failure, Failure) and "Root score" in failure.message
    assert "cp1-2: 3, below 7" in failure.text and f"gta view {judged} --task 1" in failure.text
    assert task.time > 0
    [failure] = leaf.result
    assert "the wombat was looked for" in failure.text
    assert b'<property name="score" value="3" />' in file.read_bytes()
    assert b'<property name="max_score" value="10" />' in file.read_bytes()


def test_what_has_no_score_is_an_error_and_not_a_failure(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    key = VerdictKey(task="1", leaf="cp2", judge="other")
    verdict = Unscored(cause="timeout", detail="no reply in 300 s")
    append_verdicts(run, [VerdictRow(key=key, verdict=verdict)])
    score_workflow_run(run, Settings())
    file = tmp_path / "gta.xml"
    several = gta("export", "junit", str(run), "--out", str(file))
    assert "Several judges scored" in str(several.exception) and not file.exists()
    unknown = gta("export", "junit", str(run), "--out", str(file), "--judge", "nobody")
    assert "'nobody' has not scored" in str(unknown.exception)
    assert gta("export", "junit", str(run), "--out", str(file), "--judge", "other").exit_code == 0
    cases = read(file)
    [error] = cases["gta workflow 1", "cp2"].result
    assert isinstance(error, Error) and error.type == "timeout" and "300 s" in error.text
    assert isinstance(cases["gta workflow", "1"].result[0], Error)


def test_a_unit_without_a_result_is_an_error(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    lost = UnscoredUnit(task="2", epoch=1, cause="the server went away")
    write_scores(run, read_workflow_scores(run).model_copy(update={"unscored": (lost,)}))
    file = tmp_path / "gta.xml"
    assert gta("export", "junit", str(run), "--out", str(file)).exit_code == 0
    cases = read(file)
    [error] = cases["gta workflow", "2"].result
    assert isinstance(error, Error) and "the server went away" in error.text
    assert ("gta workflow 2", "cp1-1") not in cases


def test_an_atomic_run_has_a_case_for_each_task(tmp_path: Path) -> None:
    tasks = {"0": atomic_task(), "1": atomic_task(), "2": atomic_task(gt_answer=None)}
    data = write_atomic(tmp_path / "data", tasks)
    predictions = {
        name: {"prediction": [write_trace(trace)], "gold": [write_trace(TRACE)]}
        for name, trace in (("0", TRACE), ("1", WRONG), ("2", TRACE))
    }
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps(predictions))
    run, out = str(tmp_path / "run"), tmp_path / "gta.xml"
    options = ["--mode", "end-to-end", "--data", str(data), "--out", run, "--model", "m"]
    imported = gta("import", "opencompass", str(file), *options)
    assert imported.exit_code == 0, imported.output
    assert gta("score", run).exit_code == 0
    result = gta("export", "junit", run, "--out", str(out))
    assert result.exit_code == 0, result.output
    cases = read(out)
    assert cases["gta atomic", "0"].is_passed
    [failure] = cases["gta atomic", "1"].result
    assert isinstance(failure, Failure) and "wrong tool" in failure.text
    [skipped] = cases["gta atomic", "2"].result
    assert isinstance(skipped, Skipped) and "AnsAcc+I" in skipped.message
    judged = gta("export", "junit", run, "--out", str(out), "--judge", "x")
    assert "which no judge scores" in str(judged.exception)


def test_a_run_without_scores_says_how_to_get_them(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    (run / "scores.json").unlink()
    result = gta("export", "junit", str(run), "--out", str(tmp_path / "gta.xml"))
    assert "gta score" in str(result.exception)


def test_step_by_step_a_unit_has_every_metric_that_its_task_fixes(tmp_path: Path) -> None:
    data = write_atomic(tmp_path / "data", {"0": atomic_task(), "1": atomic_task()})
    both = {"prediction": write_trace(TRACE), "gold": write_trace(TRACE)}
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps({"0": both}))
    run = tmp_path / "run"
    options = ["--mode", "step", "--data", str(data), "--out", str(run), "--model", "m"]
    imported = gta("import", "opencompass", str(file), *options)
    assert imported.exit_code == 0, imported.output
    assert gta("score", str(run)).exit_code in (0, 1)
    scores = UnitScores(run)
    assert [one.name for one in scores.of(("0", 1))] == [
        "arg_acc",
        "inst_acc",
        "tool_acc",
        "summ_acc",
    ]
    assert scores.of(("0", 1))[0].passed is not None
    [lost] = scores.of(("no such task", 1))
    assert (lost.value, lost.cause, lost.reason) == (None, "no_result", "not run yet")
