import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.records.progress import Command
from gta_bench.runs.directory import begin_progress, progress_folder
from gta_bench.runs.store import lock_folder
from tests.builders import atomic_task, write_atomic


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data" / "gta_atomic", {"0": atomic_task(), "1": atomic_task()})
    options = ("--mode", "step", "--similarity", "exact-or-half", "--agent", "gold")
    assert gta("run", "atomic", *options, "--out", "x").exit_code == 0
    return tmp_path / "x"


def test_a_finished_run_is_complete_and_one_that_is_worked_on_is_running(run: Path) -> None:
    result = gta("status", run)
    assert result.exit_code == 0, result.output
    assert "state     complete" in result.stdout
    assert "finished  2 of 2 units" in result.stdout
    assert "now       idle" in result.stdout
    assert "work      inline, 1 at once" in result.stdout
    with lock_folder(run):
        result = gta("status", run)
    assert "state     running" in result.stdout
    assert "now       0 failed · 0 running" in result.stdout


def test_a_judge_that_is_asked_now_is_shown_before_the_run_itself(run: Path) -> None:
    judge = progress_folder(run, "some judge")
    started = datetime(2026, 1, 1, tzinfo=UTC)
    begin_progress(judge, Command(started=started, judge="some judge", units=3, finished=0))
    assert "finished  2 of 2 units\n" in gta("status", run).stdout
    with lock_folder(judge):
        shown = gta("status", run).stdout
    assert "state     running" in shown
    assert "finished  0 of 3 units judged by some judge" in shown


def test_programs_get_the_same_as_json(run: Path) -> None:
    found = json.loads(gta("status", run, "--json").stdout)
    assert (found["state"], found["units"], found["done"]) == ("complete", 2, 2)
    assert found["units_a_minute"] > 0
    assert found["seconds_left"] == 0


def test_a_run_that_never_said_how_far_it_is_is_counted_from_its_logs(run: Path) -> None:
    for file in (run / "progress").iterdir():
        file.unlink()
    assert "finished  2 of 2 units" in gta("status", run).stdout
    for file in (run / "logs").glob("*.eval"):
        file.unlink()
    result = gta("status", run)
    assert "stopped: run the same command to continue" in result.stdout
    assert "finished  0 of 2 units" in result.stdout


def test_a_report_says_of_a_run_without_scores_what_status_says(run: Path) -> None:
    (run / "scores.json").unlink()
    assert f"run `gta score {run}`" in str(gta("report", run).exception)
    with lock_folder(run):
        said = str(gta("report", run, "--html", run / "page.html").exception)
    assert said == (
        f"{run} has no scores yet: it is still running, 2 of 2 units are finished. "
        f"`gta status {run}` shows its progress."
    )
    for file in (*(run / "progress").iterdir(), *(run / "logs").glob("*.eval")):
        file.unlink()
    said = str(gta("report", run).exception)
    assert "it stopped with 0 of 2 units. Run the same command to continue" in said


def test_who_gains_nothing_by_workers_is_told_so(run: Path) -> None:
    options = ("--mode", "step", "--similarity", "exact-or-half", "--agent", "gold")
    result = gta("run", "atomic", *options, "--out", "x", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert "One process is enough for 2 units" in result.stderr


def test_a_cluster_that_is_not_there_is_told_in_one_line(run: Path, loopback: None) -> None:
    pytest.importorskip("ray")
    options = ("--mode", "step", "--similarity", "exact-or-half", "--agent", "gold")
    result = gta("run", "atomic", *options, "--out", "y", "--cluster", "nowhere:x")
    assert result.exception is not None
    assert "--cluster" in str(result.exception) or "No Ray cluster" in str(result.exception)
