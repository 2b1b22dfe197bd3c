"""`gta gate` on runs of two versions of an agent, of which the second breaks some tasks."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from junitparser import JUnitXml

from gta_bench.decisions import gate as decisions
from tests.authored import write_task
from tests.builders import atomic_task, write_atomic
from tests.cli.test_run import gta

TASKS = 20
TOML = """\
format = 1
id = "q3-sales"
license = "CC-BY-4.0"

[deliverables]
"summary.csv" = "csv"

[[group]]
id = "book"

  [[group.leaf]]
  id = "north"
  says = "summary.csv has the revenue of North."
  checks = [{ is = "table.value", file = "*.csv", row = "North", column = "Revenue", equals = 1 }]

  [[group.leaf]]
  id = "south"
  says = "summary.csv has the revenue of South."
  checks = [{ is = "table.value", file = "*.csv", row = "South", column = "Revenue", equals = 2 }]
"""
RIGHT = "Region,Revenue\nNorth,1\nSouth,2\n"
WRONG = "Region,Revenue\nNorth,1\nSouth,3\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A, and B with 0, 1, 3 and 8 broken tasks."""
    folder = tmp_path_factory.mktemp("gate")
    for number in range(TASKS):
        write_task(folder / "tasks", TOML, name=f"t{number:02}")
    for name, broken in {"a": 0, "b0": 0, "b1": 1, "b3": 3, "b8": 8}.items():
        for number in range(TASKS):
            work = folder / f"results-{name}" / f"t{number:02}"
            work.mkdir(parents=True)
            (work / "summary.csv").write_text(WRONG if number < broken else RIGHT)
        options = ("--data", folder / "tasks", "--out", folder / name)
        done = gta("import", "folder", folder / f"results-{name}", *options)
        assert done.exit_code == 0, done.output
        assert gta("score", folder / name).exit_code == 0
    return folder


@pytest.mark.parametrize(
    ("name", "margin", "code"),
    [("b0", "15", 0), ("b0", "10", 11), ("b1", "15", 11), ("b3", "15", 11), ("b8", "15", 10)],
)
def test_the_exit_code_is_the_decision(runs: Path, name: str, margin: str, code: int) -> None:
    result = gta("gate", runs / "a", runs / name, "--margin", margin)
    assert result.exit_code == code, result.output
    words = {0: "Not worse: ", 10: "Worse: ", 11: "Undecided: "}
    assert result.stdout.splitlines()[-1].startswith(words[code])


def test_flips_are_named_first_with_where_to_look(runs: Path) -> None:
    result = gta("gate", runs / "a", runs / "b3")
    lines = result.stdout.splitlines()
    assert lines[0] == "3 tasks and 3 leaves got worse"
    assert lines[2].split()[:4] == ["t00", "-", "100.0", "0.0"]
    assert lines[2].endswith(f"unknown          gta view {runs / 'b3'} --task t00")
    assert lines[5].split()[:4] == ["t00", "south", "100.0", "0.0"]
    assert "flaky in BASE: unknown, because it has one repeat" in result.stderr
    back = gta("gate", runs / "b3", runs / "a")
    assert "3 tasks and 3 leaves got better" in back.stdout


def test_json_junit_markdown_and_the_report_page(runs: Path, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("gta.xml", "gta.md", "report.html")}
    options = [
        str(part)
        for pair in zip(("--junit", "--markdown", "--report"), files.values(), strict=True)
        for part in pair
    ]
    result = gta("gate", runs / "a", runs / "b8", "--json", *options)
    assert result.exit_code == 10
    found = json.loads(result.stdout)
    assert (found["decision"], found["exit_code"], found["margin"]) == ("worse", 10, 10)
    assert found["conclusion"].startswith("Worse: NEW has dropped in Root SR over 20 tasks")
    read = JUnitXml.fromfile(str(files["gta.xml"]))
    assert (read.tests, read.failures, read.errors) == (21, 9, 0)
    page, text = (files[name].read_text(encoding="utf-8") for name in ("report.html", "gta.md"))
    place = text.split("](report.html#")[1].split(")")[0]
    assert f'id="{place}"' in page
    assert "### 8 tasks and 8 leaves got worse" in text


def test_a_baseline_stands_for_its_run(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    written = gta("gate", "--write-baseline", file, runs / "a")
    assert written.exit_code == 0, written.output
    assert "root_sr of 20 tasks" in written.stderr
    assert file.stat().st_size < 10_000
    direct, stored = (
        json.loads(gta("gate", base, runs / "b8", "--json").stdout) for base in (runs / "a", file)
    )
    assert stored.pop("base") == str(file)
    assert direct.pop("base") == str(runs / "a")
    assert stored == direct
    other = gta("gate", file, runs / "b8", "--metric", "leaf_sr")
    assert "is a baseline of the metric 'root_sr', not of 'leaf_sr'" in str(other.exception)


def test_tasks_that_new_leaves_out_cannot_make_it_green(runs: Path, tmp_path: Path) -> None:
    options = ("--data", runs / "tasks", "--tasks", "8:20", "--out", tmp_path / "rest")
    assert gta("import", "folder", runs / "results-b8", *options).exit_code == 0
    assert gta("score", tmp_path / "rest").exit_code == 0
    asked = (str(runs / "a"), str(tmp_path / "rest"), "--margin", "23")
    code, said = run_gate(*asked)
    assert (code, said.startswith("8 tasks of ")) == (2, True)
    assert said.endswith("with --common.")
    decided = gta("gate", *asked, "--common")
    assert decided.exit_code == 0
    assert "12 tasks that both runs have (8 left out)" in decided.stdout
    # More tasks than BASE has hide nothing.
    assert gta("gate", tmp_path / "rest", runs / "b0", "--margin", "23").exit_code == 0


def test_a_baseline_of_an_unfinished_run_says_so(runs: Path, tmp_path: Path) -> None:
    run, file = tmp_path / "part", tmp_path / "baseline.json"
    shutil.copytree(runs / "b8", run)
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    for one in scores["judges"][0]["tasks"][:10]:
        one["root"] = None
    (run / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    assert "10 tasks without a score" in gta("gate", "--write-baseline", file, run).stderr
    lacking = gta("gate", runs / "a", run)
    assert lacking.exit_code == 3, lacking.output
    assert "Not enough scored: 10 tasks of 20 have no score" in lacking.stdout


def test_the_sequential_test_needs_fewer_tasks(runs: Path) -> None:
    result = gta("gate", runs / "a", runs / "b8", "--sequential", "--seed", "night 2", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["decision"], found["seed"]) == (10, "worse", "night 2")
    assert found["used"] < 20


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["a"], "gta gate BASE NEW", 2),
        (["a", "a"], "they are the same run, or copies of it", 2),
        (["a", "nowhere"], "does not exist", 2),
        (["a", "b8", "--metric", "root"], "Metrics for workflow runs: root_sr", 2),
        (["a", "b8", "--metric", "arg_acc"], "Unknown metric 'arg_acc' of tasks", 2),
        (["a", "b8", "--judge", "gpt"], "'gpt' has not scored", 2),
        (["a", "b8", "--margin", "100"], "not from 0 to below 100 points", 2),
        (["a", "b8", "--margin", "-1"], "is not in the range", 2),
        (["a", "b8", "--margin", "nan"], "is not a number", 2),
        (["a", "b8", "--seed", "7"], "--seed is for --sequential", 2),
        (["a", "tasks/t00/task.toml"], "cannot be read", 2),
        (["a", "tasks"], "run.json", 2),
        (["--write-baseline", "x.json", "a", "b8"], "gta gate --write-baseline FILE RUN", 2),
    ],
)
def test_mistakes_are_named(
    runs: Path, arguments: list[str], said: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    ran = run_gate(*arguments)
    assert ran[0] == code
    assert said in ran[1]


def run_gate(*arguments: str) -> tuple[int, str]:
    """The exit code of the command and the last line that it says."""
    result = gta("gate", *arguments)
    error = result.exception
    message = result.stderr if isinstance(error, SystemExit) else str(error)
    code = getattr(error, "exit_code", result.exit_code)
    return code, message.splitlines()[-1] if message else ""


def test_runs_of_different_datasets_are_refused_by_that(runs: Path, tmp_path: Path) -> None:
    data = write_atomic(tmp_path / "data", {"0": atomic_task()})
    options = ("--agent", "gold", "--data", data, "--similarity", "exact-or-half")
    gta("run", "atomic", "--mode", "step", *options, "--out", tmp_path / "atomic")
    result = gta("gate", runs / "a", tmp_path / "atomic")
    assert "they are runs of workflow, workflow and of atomic, step" in str(result.exception)
    judged = gta("gate", "--write-baseline", "x", tmp_path / "atomic", "--judge", "x")
    assert "which no judge scores" in str(judged.exception)


def test_a_crash_ends_with_another_code_than_a_decision(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(decisions, "decide_gate", crash)
    assert gta("gate", runs / "a", runs / "b8").exit_code == 1


def test_the_shell_sees_the_exit_code_and_a_full_disk_is_not_a_decision(runs: Path) -> None:
    command = [sys.executable, "-m", "gta_bench", "gate", "a", "b8"]
    ran = subprocess.run(command, cwd=runs, capture_output=True, text=True, check=False)
    assert ran.returncode == 10, ran.stderr
    full = subprocess.run(
        [*command, "--junit", "/proc/gta.xml"],
        cwd=runs,
        capture_output=True,
        text=True,
        check=False,
    )
    assert full.returncode == 3, full.stderr
