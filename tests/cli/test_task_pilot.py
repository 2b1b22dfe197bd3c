"""`gta task pilot`, `gta task preview`, and what `gta run` says about tasks that are not ready."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from gta_bench.authoring import pilot
from gta_bench.cli import app
from gta_bench.confine import systems
from gta_bench.errors import UsageError
from gta_bench.judge_quality.judge_runs import NULLS
from tests.authoring.folders import TASK, write_authored
from tests.content.conftest import jail

__all__ = ["jail"]
TONE = '[[leaf]]\nid = "tone"\nsays = "The answer is polite."\n'


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jail: object) -> None:
    monkeypatch.chdir(tmp_path)


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_a_piloted_task_is_ready_until_it_changes_and_a_run_says_so() -> None:
    folder = write_authored(Path("tasks"))
    run = ("run", "workflow", "--data", "tasks", "--agent", "silent", "--estimate", "--out", "r")
    assert "not ready: 1 of 1 task. `gta task pilot` says why." in gta(*run).stderr
    done = gta("task", "pilot", str(folder), "--no-judge")
    assert (done.exit_code, done.stderr) == (0, "q3-sales: ready.\n")
    heading, _, sums, _ = done.stdout.splitlines()
    assert heading.split()[:5] == ["leaf", "weight", "by", "gold", "floor"]
    assert sums.split() == ["sums", "50.0%", "check", "10.0", "0.0", "1/1", "0/1", *"---"]
    assert "not ready" not in gta(*run).stderr
    (folder / "gold/plain/summary.csv").write_bytes(b"Region,Revenue\n")
    assert "not ready: 1 of 1 task" in gta(*run).stderr
    again = gta("task", "pilot", "tasks", "--no-judge")
    assert again.exit_code == 1 and "T34 error gold/plain, leaf sums: gold gets 0.0" in again.stdout
    assert again.stderr.startswith("q3-sales: unchecked (2 errors)")


def test_a_pilot_without_a_jail_says_why_no_check_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS it printed dashes and the number of missing scores, and nothing else."""
    monkeypatch.setattr(systems, "sys", SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(pilot, "NULLS", {"empty": NULLS["empty"]})
    write_authored(Path("tasks"), without="wrong")
    done = gta("task", "pilot", "tasks", "--no-judge")
    reason, state = done.stderr.splitlines()
    assert done.exit_code == 1 and state.startswith("q3-sales: unchecked (12 scores missing; ")
    assert reason.startswith("q3-sales: no score for gold/plain, leaf advice: check_failed: ")
    for words in ("macOS does not have", "`--tape`", "`--tools URL`", "docker/Dockerfile"):
        assert words in reason


def test_checks_alone_do_not_replace_a_pilot_with_a_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pilot, "NULLS", {"empty": NULLS["empty"]})
    folder = write_authored(Path("tasks"), TASK + TONE, without="wrong")
    alone = gta("task", "pilot", "tasks", "--no-judge")
    assert "q3-sales: checked (1 leaf not judged" in alone.stderr and alone.exit_code == 0
    judged = gta("task", "pilot", "tasks", "--judge", "scripted/honest", "--json")
    (found,) = json.loads(judged.stdout)
    assert (judged.exit_code, found["judge"]) == (1, "scripted/honest")
    assert ("T34", "tone") in [(one["check"], one["field"]) for one in found["findings"]]
    kept = (folder / "pilot.json").read_bytes()
    alone = gta("task", "pilot", "tasks", "--no-judge")
    assert "keeps the pilot with a judge" in alone.stderr
    assert (folder / "pilot.json").read_bytes() == kept


def test_a_preview_is_one_page() -> None:
    folder = write_authored(Path("tasks"))
    done = gta("task", "preview", str(folder))
    assert (done.exit_code, done.stderr) == (0, "Open preview-q3-sales.html\n")
    assert "<h1>q3-sales</h1>" in Path("preview-q3-sales.html").read_text()
    assert gta("task", "preview", "tasks", "--out", "a.html").exit_code == 0
    write_authored(Path("tasks/more"))
    (Path("tasks/more/q3-sales")).rename("tasks/two")
    said = str(gta("task", "preview", "tasks").exception)
    assert said == "tasks has several tasks. Preview one of them, such as tasks/q3-sales."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tasks"], "Name a judge with --judge"),
        (["tasks", "--no-judge", "--judge", "scripted/honest"], "Give either"),
        (["tasks", "tasks/q3-sales", "--no-judge"], "same name"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(arguments: list[str], said: str) -> None:
    write_authored(Path("tasks"))
    problem = gta("task", "pilot", *arguments).exception
    assert isinstance(problem, UsageError) and said in str(problem)
    assert not Path("runs").exists()
