import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gta_bench.runs.logs import find_log
from gta_bench.settings import can_open_pages
from tests.cli.test_run import gta
from tests.tasks.workflow_runs import judged_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_run(tmp_path_factory.mktemp("view"))


@pytest.fixture
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_display")
def test_without_a_display_the_address_is_told(run: Path) -> None:
    result = gta("view", run, "--task", "2")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{(run / 'report.html').resolve().as_uri()}#run-1-task-2-1\n"
    assert 'id="run-1-task-2-1"' in (run / "report.html").read_text(encoding="utf-8")
    assert gta("view", run).stdout.endswith("report.html\n")


def test_a_browser_is_opened_where_there_is_one(run: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n', encoding="utf-8")
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    result = subprocess.run(
        [sys.executable, "-m", "gta_bench.cli", "view", str(run), "--task", "1"],
        env={**os.environ, "BROWSER": f"{browser} %s"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    opened = (tmp_path / "opened").read_text(encoding="utf-8")
    assert opened == result.stdout
    assert opened.startswith("file:///")


def test_an_unknown_task_is_refused(run: Path) -> None:
    assert "has no task '9'" in str(gta("view", run, "--task", "9").exception)


def test_a_unit_that_was_not_run_has_no_trace(run: Path) -> None:
    result = gta("view", run, "--task", "1", "--epoch", "2", "--trace")
    assert "has no sample of task '1', epoch 2" in str(result.exception)
    assert find_log(run / "nowhere", "1", 1) is None
    assert str(find_log(run / "logs", "1", 1)).endswith(".eval")


@pytest.mark.parametrize(
    ("environment", "platform", "can"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "w"}, "linux", True),
        ({"BROWSER": "x"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_a_page_can_be_opened_where_something_shows_it(
    environment: dict[str, str], platform: str, can: bool
) -> None:
    assert can_open_pages(environment, platform) is can
