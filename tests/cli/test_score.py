import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from tests.builders import write_json
from tests.upstream_files import reference_predictions


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def predictions(tmp_path: Path, atomic_dir: Path) -> Path:
    for mode in ("step", "end-to-end"):
        write_json(tmp_path / f"{mode}.json", reference_predictions(atomic_dir, mode))
    return tmp_path


def score(file: Path, data: Path, mode: str, *options: str, ends_with: int = 0) -> Any:
    command: list[str | Path] = ["score", "--predictions", file, "--dataset", "atomic"]
    command += ["--data", data]
    result = gta(*command, "--mode", mode, "--similarity", "exact-or-half", "--json", *options)
    assert result.exit_code == ends_with, result.output
    return json.loads(result.stdout)


def test_step_predictions_score_to_the_last_digit(predictions: Path, atomic_dir: Path) -> None:
    scored = score(predictions / "step.json", atomic_dir, "step", "--scoring", "compat")
    assert scored["metrics"] == {
        "inst_acc": 105.6241426611797,
        "tool_acc": 100.0,
        "arg_acc": 100.0,
        "summ_acc": 88.66279069767442,
        "tool_call": 557,
        "tool_call_error": 0,
    }
    assert scored["findings"] == []


def test_end_to_end_predictions_score_to_the_last_digit(
    predictions: Path, atomic_dir: Path
) -> None:
    scored = score(predictions / "end-to-end.json", atomic_dir, "end-to-end", "--scoring", "compat")
    metrics = scored["metrics"]
    assert metrics["ans_acc"] == pytest.approx(88.6628, abs=1e-4)
    assert metrics["ans_acc_i"] == pytest.approx(91.2664, abs=1e-4)
    for name in ("p_f1", "o_f1", "l_f1", "c_f1"):
        assert metrics[name] == pytest.approx(99.9995, abs=1e-4)
    assert (metrics["tool_call"], metrics["tool_call_error"]) == (557, 0)


def test_strict_scores_of_the_same_files_are_never_above_100(
    predictions: Path, atomic_dir: Path
) -> None:
    step = score(predictions / "step.json", atomic_dir, "step")["metrics"]
    assert (step["inst_acc"], step["tool_acc"], step["arg_acc"]) == (100, 100, 100)
    end = score(predictions / "end-to-end.json", atomic_dir, "end-to-end")["metrics"]
    assert [end[name] for name in ("p_f1", "o_f1", "l_f1", "c_f1")] == [100, 100, 100, 100]


def test_a_missing_prediction_counts_as_failed_under_strict(
    predictions: Path, atomic_dir: Path
) -> None:
    content = json.loads((predictions / "step.json").read_text(encoding="utf-8"))
    del content["0"]
    write_json(predictions / "step.json", content)
    file = predictions / "step.json"
    assert score(file, atomic_dir, "step", ends_with=1)["metrics"]["inst_acc"] < 100
    compat = score(file, atomic_dir, "step", "--scoring", "compat", ends_with=1)
    assert compat["metrics"]["tool_acc"] == 100


def test_three_predictions_are_3_of_229_everywhere(predictions: Path, atomic_dir: Path) -> None:
    """They were shown as `229/229 compat 100.00`, and the command ended with 0."""
    file, out = predictions / "step.json", predictions / "run"
    content = json.loads(file.read_text(encoding="utf-8"))
    write_json(file, {key: content[key] for key in ("0", "1", "2")})
    for scoring in ("strict", "compat"):
        found = score(file, atomic_dir, "step", "--scoring", scoring, ends_with=1)
        assert (found["n"], found["n_tasks"]) == (3, 229)
    options: list[str | Path] = ["--data", atomic_dir, "--mode", "step"]
    asked: list[str | Path] = ["score", "--predictions", file, "--dataset", "atomic", *options]
    shown = gta(*asked, "--similarity", "exact-or-half")
    assert "3/229" in shown.stdout.splitlines()[0]
    assert "a prediction for 3 of 229 tasks" in shown.stderr
    gta("import", "opencompass", file, *options, "--out", out)
    scored = gta("score", out, "--similarity", "exact-or-half")
    assert scored.exit_code == 1
    assert scored.stdout.count("3/229") == len(("strict", "compat"))
    assert "predictions for 3 of 229 tasks" in scored.stdout
    (report,) = json.loads(gta("report", out, "--format", "json").stdout)
    assert (report["strict"]["n"], report["compat"]["n"], report["n_units"]) == (3, 3, 229)


def test_a_prediction_file_is_scored_without_the_evaluation_engine(
    predictions: Path, atomic_dir: Path
) -> None:
    program = (
        "import sys; from gta_bench.cli import app; "
        "app(sys.argv[1:], standalone_mode=False); "
        "print([m for m in ('inspect_ai', 'torch') if m in sys.modules])"
    )
    command = ["score", "--predictions", str(predictions / "step.json"), "--dataset", "atomic"]
    options = ["--data", str(atomic_dir), "--mode", "step", "--similarity", "exact-or-half"]
    result = subprocess.run(
        [sys.executable, "-c", program, *command, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[]"


def test_an_imported_run_scores_like_the_file(predictions: Path, atomic_dir: Path) -> None:
    out = predictions / "run"
    file = predictions / "end-to-end.json"
    command: list[str | Path] = ["import", "opencompass", file, "--mode", "end-to-end"]
    command += ["--out", out]
    imported = gta(*command, "--data", atomic_dir, "--model", "someone/x")
    assert imported.exit_code == 0, imported.output
    assert "229 of 229 tasks imported" in imported.stderr
    scored = gta("score", out, "--similarity", "exact-or-half", "--scoring", "compat", "--json")
    direct = score(file, atomic_dir, "end-to-end", "--scoring", "compat")
    assert json.loads(scored.stdout)["metrics"] == direct["metrics"]
    assert "someone/x · imported" in gta("report", out).stderr


def test_an_import_names_what_is_missing_and_what_differs(
    predictions: Path, atomic_dir: Path
) -> None:
    content = json.loads((predictions / "step.json").read_text(encoding="utf-8"))
    del content["3"]
    for number in range(10, 25):
        content[str(number)]["gold"] = content[str(number)]["gold"][:1]
    write_json(predictions / "step.json", content)
    command: list[str | Path] = ["import", "opencompass", predictions / "step.json"]
    command += ["--mode", "step"]
    result = gta(*command, "--data", atomic_dir, "--out", predictions / "run")
    assert "Not delivered, so strict scoring counts them as failed: 3\n" in result.stderr
    assert "task 10, gold: the reference stored in the file has 1 step, not" in result.stderr
    assert "… and 5 more findings." in result.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["--predictions", "."], ["--predictions", ".", "--dataset", "atomic"]]
)
def test_an_incomplete_command_says_what_it_needs(arguments: list[str]) -> None:
    result = gta("score", *arguments)
    assert "Give either a run folder, or --predictions FILE with --dataset and --mode" in str(
        result.exception
    )
