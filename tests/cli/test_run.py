import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from tests.builders import atomic_task, write_atomic
from tests.chat_server import chat_server


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data" / "gta_atomic", {"0": atomic_task(), "1": atomic_task()})


def run(*arguments: str | Path) -> Result:
    return gta("run", "atomic", "--mode", "step", "--similarity", "exact-or-half", *arguments)


def test_gold_runs_scores_and_reports() -> None:
    result = run("--agent", "gold", "--out", "runs/gold")
    assert result.exit_code == 0, result.output
    assert "runs/gold  2/2  strict    100.00   100.00  100.00" in result.stdout
    assert "gold; 0 model calls" in result.stderr
    assert "not comparable with published ones" in result.stderr
    manifest = json.loads(Path("runs/gold/run.json").read_text(encoding="utf-8"))
    assert manifest["system"]["agent"] == "gold"
    assert manifest["tasks"] == ["0", "1"]
    assert manifest["prompts"]
    assert json.loads(Path("runs/gold/scores.json").read_text(encoding="utf-8"))["n"] == 2


def test_the_same_command_again_does_nothing_twice() -> None:
    run("--agent", "gold", "--out", "runs/gold")
    logs = {file.name: file.stat().st_mtime_ns for file in Path("runs/gold/logs").glob("*.eval")}
    result = run("--agent", "gold", "--out", "runs/gold")
    assert result.exit_code == 0
    again = {file.name: file.stat().st_mtime_ns for file in Path("runs/gold/logs").glob("*.eval")}
    assert again == logs


def test_another_similarity_scores_the_same_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # no weights are fetched there
    run("--agent", "gold", "--out", "runs/gold")
    result = gta("run", "atomic", "--mode", "step", "--agent", "gold", "--out", "runs/gold")
    assert result.exit_code == 0, result.output
    assert "wordllama" in result.stderr


def test_a_part_of_the_tasks_is_run_and_the_report_says_so() -> None:
    result = run("--agent", "silent", "--tasks", "0:1", "--epochs", "2", "--out", "runs/part")
    assert "runs/part  2/2  strict      0.00" in result.stdout
    assert "subset: 1 of 2 tasks; dataset of 2 tasks, not the released 229" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--agent", "react"], "needs a model"),
        (["--agent", "gold", "--model", "a/b"], "does not use a model; leave --model out"),
        (["--agent", "nobody", "--model", "a/b"], "Unknown agent 'nobody'"),
        (["--model", "gpt"], "Unknown model 'gpt'"),
        (["--model", "mockllm/a", "--model", "mockllm/a"], "name the same model"),
        (["--agent", "gold", "--tasks", "9"], "the dataset has no task '9'"),
        (["--agent", "gold", "--tasks", "a:b"], "is not a range. Write it as 0:10"),
        (["--agent", "gold", "--tasks", "5:9"], "selects no task"),
        (["--agent", "gold", "--tasks", "0", "--limit", "1"], "--tasks and --limit exclude each"),
        (["--agent", "gold", "--sample-seed", "1"], "--sample-seed needs --sample"),
        (["--agent", "gold", "--task", "9"], "--task: the dataset has no task '9'"),
    ],
)
def test_a_mistake_on_the_command_line_is_met_by_one_line(arguments: list[str], said: str) -> None:
    result = run(*arguments, "--out", "runs/x")
    assert result.exception is not None
    assert said in str(result.exception)
    assert not Path("runs").exists()


def test_a_run_is_extended_and_scored_as_a_whole_also_by_a_command_for_less() -> None:
    assert run("--agent", "gold", "--limit", "1", "--out", "runs/grown").exit_code == 0
    result = run("--agent", "gold", "--sample", "2", "--epochs", "2", "--out", "runs/grown")
    assert "runs/grown  4/4  strict    100.00" in result.stdout
    result = run("--agent", "gold", "--task", "1", "--out", "runs/grown")
    assert result.exit_code == 0
    assert "runs/grown  4/4  strict    100.00" in result.stdout
    manifest = json.loads(Path("runs/grown/run.json").read_text(encoding="utf-8"))
    (growth,) = manifest["growth"]
    assert (growth["tasks"], growth["epochs"]) == (["1"], 1)
    refused = run("--agent", "silent", "--out", "runs/grown")
    assert "another setting (agent: gold there, silent here)" in str(refused.exception)


def test_the_data_lie_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomic(tmp_path / "shelf" / "gta_atomic", {"elsewhere": atomic_task()})
    monkeypatch.setenv("GTA_DATA", "shelf")
    run("--agent", "gold", "--out", "runs/gold")
    manifest = json.loads(Path("runs/gold/run.json").read_text(encoding="utf-8"))
    assert manifest["tasks"] == ["elsewhere"]
    shown = gta("config", "show").stdout
    assert ["data.atomic", "shelf/gta_atomic", "GTA_DATA"] in [
        line.split() for line in shown.splitlines()
    ]


def test_an_estimate_counts_calls_and_tokens_and_sends_nothing() -> None:
    Path("gta.toml").write_text(
        '[models.m]\nmodel = "openai-api/local/m"\nbase_url = "http://127.0.0.1:9/v1"\n'
        "input_price = 1000000\noutput_price = 0\n",
        encoding="utf-8",
    )
    result = run("--model", "m", "--agent", "react", "--estimate", "--out", "runs/x")
    assert result.exit_code == 0, result.output
    assert "openai-api/local/m · react: 2 units left, 4 calls, " in result.stderr
    assert " output tokens, $" in result.stderr
    assert not Path("runs").exists()


def test_an_estimate_without_prices_says_where_to_put_them() -> None:
    result = run("--model", "openai/gpt-5", "--estimate", "--tasks", "0", "--out", "runs/x")
    assert "2 calls" in result.stderr
    assert "cost unknown: set input_price and output_price" in result.stderr


def settings_for(url: str, *names: str) -> None:
    tables = [
        f'[models.{name}]\nmodel = "openai-api/local/{name}"\nbase_url = "{url}"\n'
        'key_env = "GTA_TEST_KEY_A"\n'
        for name in names
    ]
    Path("gta.toml").write_text("\n".join(tables), encoding="utf-8")


def test_several_models_are_run_by_one_command(
    loopback: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GTA_TEST_KEY_A", "s3cret")
    with chat_server(lambda request: f"Final Answer: {request['model']} says 7") as server:
        settings_for(server.url, "small", "large")
        options = ["--model", "small", "--model", "large", "--agent", "react", "--out", "runs/x"]
        command = [sys.executable, "-m", "gta_bench.cli", "run", "atomic", "--mode", "step"]
        result = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "runs/x/small  2/2" in result.stdout
    assert "runs/x/large  2/2" in result.stdout
    scores = json.loads(Path("runs/x/large/scores.json").read_text(encoding="utf-8"))
    assert scores["models"] == ["large-2026"]
    assert scores["usage"]["input_tokens"] == 40
    everything = "".join(
        file.read_text(encoding="utf-8", errors="replace")
        for file in Path("runs").rglob("*")
        if file.is_file()
    )
    assert "s3cret" not in everything


def test_report_and_score_work_on_a_stored_run() -> None:
    run("--agent", "gold", "--out", "runs/gold")
    run("--agent", "silent", "--out", "runs/silent")
    table = gta("report", "runs/gold", "runs/silent").stdout
    assert "runs/gold    2/2  compat    100.00" in table
    markdown = gta("report", "runs/gold", "--format", "markdown").stdout
    assert "| runs/gold | 2/2 | strict | 100.00 |" in markdown
    reports = json.loads(gta("report", "runs/gold", "--format", "json").stdout)
    assert reports[0]["strict"]["inst_acc"] == 100.0
    assert reports[0]["manifest"]["mode"] == "step"
    first = reports[0]["intervals"][0]
    assert (first["metric"], first["value"], first["high"]) == ("arg_acc", 100.0, 100.0)
    assert 0 < first["low"] < 100 and first["n"] == 2
    assert f"{first['low']:.2f} to 100.00" in table
    scored = gta("score", "runs/gold", "--similarity", "exact-or-half", "--json")
    assert json.loads(scored.stdout)["metrics"]["inst_acc"] == 100.0
    assert "runs/gold  2/2" in gta("score", "runs/gold").stdout


def test_a_run_without_scores_says_how_to_get_them() -> None:
    run("--agent", "gold", "--out", "runs/gold")
    Path("runs/gold/scores.json").unlink()
    result = gta("report", "runs/gold")
    assert "run `gta score runs/gold`" in str(result.exception)


def test_several_models_do_not_write_into_a_run() -> None:
    run("--agent", "gold", "--out", "runs/gold")
    result = run("--model", "mockllm/a", "--model", "mockllm/b", "--out", "runs/gold")
    assert "is already a run, but several models need a parent folder" in str(result.exception)
    assert not (Path("runs/gold") / "mockllm-a").exists()


def test_what_a_limit_left_out_is_completed_by_another_command_than_before() -> None:
    run("--agent", "gold", "--out", "runs/grown")
    result = run("--agent", "gold", "--limit", "1", "--epochs", "2", "--out", "runs/grown")
    assert "complete it with `gta run` for all its tasks and epochs, within its limits" in (
        result.stderr
    )
