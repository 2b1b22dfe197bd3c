import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import UsageError
from tests.content.conftest import jail

__all__ = ["jail"]


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def score(run: str) -> float:
    scored = gta("score", run, "--json")
    assert scored.exit_code == 0, scored.stderr
    (table,) = json.loads(scored.stdout)["judges"]
    return float(table["tasks"][0]["root"])


def test_a_new_task_lints_and_its_gold_gets_everything(jail: object) -> None:
    made = gta("task", "new", "tasks/mine", "--kind", "csv")
    assert made.exit_code == 0 and "12 files in tasks/mine." in made.stderr
    clean = gta("task", "lint", "tasks")
    assert (clean.exit_code, clean.stdout) == (0, "")
    assert "1 task: 0 errors, 0 warnings, 0 notes." in clean.stderr
    assert "T28, T34" in clean.stderr
    shutil.copytree("tasks/mine/gold/plain", "results/mine")
    gta("import", "folder", "results", "--data", "tasks", "--out", "gold")
    assert score("gold") == 10


@pytest.mark.slow
def test_a_new_task_runs_at_once(jail: object) -> None:
    gta("task", "new", "tasks/mine")
    ran = gta("run", "workflow", "--agent", "silent", "--data", "tasks", "--out", "silent")
    assert ran.exit_code == 0, ran.stderr
    assert score("silent") == 0


def test_findings_are_lines_or_json_and_errors_decide_the_exit_code() -> None:
    gta("task", "new", "tasks/mine")
    file = Path("tasks/mine/task.toml")
    text = file.read_text()
    file.write_text(text.replace('license = "CC-BY-4.0"', ""))
    warned = gta("task", "lint", "tasks/mine")
    assert warned.exit_code == 0
    assert warned.stdout.startswith("mine/task.toml: license: warning T09: there is no license;")
    file.write_text(text.replace("CC-BY-4.0", 'MIT"\nallow = ["T33: only one way"]\n#"'))
    shutil.rmtree("tasks/mine/gold/plain")
    shutil.rmtree("tasks/mine/wrong")
    waived = gta("task", "lint", "tasks/mine")
    assert waived.exit_code == 0 and "waived: mine/gold: T33: only one way" in waived.stderr
    Path("tasks/mine/request.md").write_text("")
    failed = gta("task", "lint", "tasks/mine", "--json")
    report = json.loads(failed.stdout)
    assert failed.exit_code == 1 and report["tasks"] == 1
    assert report["findings"][0]["check"] == "T03" and report["waived"][0]["finding"]["check"]
    file.write_text("format = 1")
    assert "Not applied to 1 task: T06, T07" in gta("task", "lint", "tasks").stderr


def test_the_released_layout_names_its_tasks(tmp_path: Path) -> None:
    leaf = {"id": "a", "requirements": "", "weight": 1}
    message = {"role": "user", "content": "Describe the north in a page."}
    task = {"dialogs": [message], "sub_tasks": [leaf], "files": [], "tools": []}
    Path("end.json").write_text(json.dumps({"7": task}))
    found = gta("task", "lint", ".")
    assert found.exit_code == 1
    assert "end.json: task 7 a: error T10: the leaf does not say what it wants." in found.stdout


def test_a_rule_is_explained_without_a_path() -> None:
    explained = gta("task", "lint", "--explain", "T14")
    assert explained.stdout.startswith("T14 (warning): A leaf wants one thing")
    assert isinstance(gta("task", "lint", "--explain", "X").exception, UsageError)
    assert isinstance(gta("task", "lint").exception, UsageError)
