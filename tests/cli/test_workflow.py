import json
from pathlib import Path

import pytest

from gta_bench.runs.directory import read_manifest, read_workflow_scores
from gta_bench.runs.verdicts import read_verdicts
from gta_bench.settings import Settings
from tests.cli.test_run import gta
from tests.tasks.workflow_runs import judged_run, write_dataset

STORED = Path("predictions") / "workflow_gemini25pro_lagent_20"


@pytest.fixture(scope="module")
def imported(data_dir: Path, workflow_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 20 stored results as a run."""
    out = tmp_path_factory.mktemp("imported") / "run"
    result = gta(
        "import",
        "opencompass",
        data_dir / STORED,
        "--dataset",
        "workflow",
        "--data",
        workflow_dir,
        "--model",
        "gemini-2.5-pro",
        "--out",
        out,
    )
    assert result.exit_code == 0, result.output
    assert "20 of 20 tasks imported" in result.stderr
    assert "21 deliverables, 229 stored verdicts, 63 of them without a score." in result.stderr
    return out


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_run(tmp_path_factory.mktemp("judged"))


def test_stored_results_are_scored_both_ways(imported: Path) -> None:
    result = gta("score", imported)
    assert result.exit_code == 1
    assert "strict    6/20  4.82    33.33    31.93  166/229    69.72" in result.stdout
    assert "compat   20/20  2.95" in result.stdout
    assert "26 of 109 tool calls reached no tool" in result.stderr
    assert "upstream left 63 of 229 leaves without a score (reply_not_kept)" in result.stderr
    scores = read_workflow_scores(imported)
    assert [judge.compat.n for judge in scores.judges] == [20]


def test_the_same_import_again_adds_no_verdict(
    imported: Path, data_dir: Path, workflow_dir: Path
) -> None:
    before = (imported / "verdicts.jsonl").read_bytes()
    options = ["--dataset", "workflow", "--data", str(workflow_dir), "--model", "gemini-2.5-pro"]
    gta("import", "opencompass", data_dir / STORED, *options, "--out", imported)
    assert (imported / "verdicts.jsonl").read_bytes() == before
    assert len(read_verdicts(imported)) == 229


def test_scores_are_json_too(judged: Path) -> None:
    result = gta("score", judged, "--json")
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)
    assert scores["judges"][0]["strict"]["leaf_sr"] == pytest.approx(100 / 3)
    assert scores["tool_sr"] == 100


def test_a_report_has_every_form(judged: Path) -> None:
    table = gta("report", judged)
    assert "GTA-Workflow" in table.stdout
    assert "Thresholds of" in table.stdout
    assert "dataset of 2 tasks, not the released 132" in table.stdout
    page = gta("report", judged, "--format", "markdown").stdout
    assert "## GTA-Workflow" in page
    assert "| delivered | html | 2/2 | 4.75 |" in page
    report = json.loads(gta("report", judged, "--format", "json").stdout)[0]
    assert report["judges"][0]["strict"]["n"] == 2
    assert report["manifest"]["mode"] == "workflow"


def test_the_tree_of_a_task_is_shown(judged: Path) -> None:
    result = gta("report", judged, "--task", "2")
    assert "Task 2: 4.75 by scripted, 3 of 3 leaves scored" in result.stdout
    assert "cp1-1: 10.00. Quokkas are named" in result.stdout
    assert "Task 1:" not in result.stdout
    assert "Task 1:" in gta("report", judged, "--task", "all").stdout


def test_a_run_becomes_a_page(judged: Path, tmp_path: Path) -> None:
    result = gta("report", judged, "--html", tmp_path / "run.html")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "Quokkas are named" in text
    assert "outputs/page.html" in text


def test_several_runs_share_a_page(judged: Path, tmp_path: Path) -> None:
    gta("report", judged, judged, "--html", tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<h1>2 runs</h1>" in text
    assert 'id="run-2-task-1-1"' in text


def test_what_has_no_tree_is_refused(judged: Path) -> None:
    assert "has no task '9'" in str(gta("report", judged, "--task", "9").exception)


def test_the_null_system_runs_without_a_model_and_waits_for_a_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path / "data")
    options = ["--agent", "silent", "--data", "data", "--tasks", "1", "--max-turns", "1"]
    result = gta("run", "workflow", *options, "--out", "run")
    assert result.exit_code == 0, result.output
    assert "no judge has scored it: run `gta score run --judge MODEL`" in result.stderr
    assert read_manifest(Path("run")).spec.dataset == "workflow"
    refused = gta("report", "run", "--task", "1")
    assert "No judge has scored run" in str(refused.exception)
    assert Settings().judge.leaf_threshold == 7


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "workflow", "--agent", "gold", "--out", "x"], "GTA-Workflow has none"),
        (
            ["run", "workflow", "--agent", "silent", "--feedback-rounds", "1", "--out", "x"],
            "needs exactly one --judge",
        ),
        (["import", "opencompass", ".", "--dataset", "workflow", "--mode", "step"], "--mode"),
        (["import", "opencompass", "."], "--mode"),
    ],
)
def test_a_mistake_is_met_by_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_dataset(tmp_path / "data" / "gta_workflow")
    out = [] if "--out" in arguments else ["--out", "x"]
    result = gta(*arguments, *out)
    assert said in str(result.exception)
