"""The traces of runs as ATIF files."""

import json
from pathlib import Path

from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.records.atif import Trajectory, read_steps
from gta_bench.records.steps import AnswerStep, CallStep, write_trace
from tests.builders import atomic_task, write_atomic
from tests.tasks.workflow_runs import write_dataset

TRACE = (CallStep(name="OCR", arguments={"image": "inputs/menu.jpg"}), AnswerStep(content="7"))


def gta(*command: str) -> str:
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return result.output


def test_an_atomic_run_is_written_and_read_back(tmp_path: Path) -> None:
    data = write_atomic(tmp_path / "data", {"0": atomic_task(), "1": atomic_task()})
    steps = [write_trace(TRACE)]
    predictions = tmp_path / "predictions.json"
    predictions.write_text(json.dumps({"0": {"prediction": steps, "gold": steps}}))
    run, out = str(tmp_path / "run"), tmp_path / "out"
    options = ["--mode", "end-to-end", "--data", str(data), "--out", run, "--model", "m"]
    gta("import", "opencompass", str(predictions), *options)
    assert "2 trajectories" in gta("export", "atif", run, "--out", str(out))
    found = {file.stem: Trajectory.model_validate_json(file.read_bytes()) for file in out.iterdir()}
    assert read_steps(found["atomic-0-1"].steps) == TRACE
    assert found["atomic-0-1"].agent.model_name == "m"
    assert found["atomic-0-1"].extra == {"dataset": "atomic", "task": "0", "epoch": 1}
    assert [step.source for step in found["atomic-1-1"].steps] == ["user"]
    again = CliRunner().invoke(app, ["export", "atif", run, "--out", str(out)])
    assert "is not empty" in str(again.exception)


def test_a_workflow_run_is_written(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data")
    (tmp_path / "done" / "1").mkdir(parents=True)
    (tmp_path / "done" / "1" / "final.txt").write_text("Here.", encoding="utf-8")
    run, out = str(tmp_path / "run"), tmp_path / "out"
    options = ["--data", str(data), "--tasks", "1", "--out", run, "--harness", "Other"]
    gta("import", "folder", str(tmp_path / "done"), *options)
    gta("export", "atif", run, "--out", str(out))
    (file,) = out.iterdir()
    found = Trajectory.model_validate_json(file.read_bytes())
    assert read_steps(found.steps) == (AnswerStep(content="Here."),)
    assert found.agent.name == "Other"
