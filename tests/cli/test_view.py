import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gta_bench.runs.logs import find_log
from gta_bench.settings import can_open_pages
from tests.cli.test_run import gta
from tests.tasks.workflow_runs import judged_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_run(tmp_path_factory.mktemp("view"))


def test_the_app_opens_at_the_task_and_ends_with_an_interrupt(
    run: Path, tmp_path: Path, loopback: None
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n', encoding="utf-8")
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    server = subprocess.Popen(
        [sys.executable, "-m", "gta_bench.cli", "view", str(run), "--task", "1"],
        env={**os.environ, "BROWSER": f"{browser} %s"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None and server.stderr is not None
    try:
        address = server.stdout.readline().strip()
        assert "/runs/run/unit?task=1&epoch=1&token=" in address
        with httpx.Client(follow_redirects=True) as client:
            page = client.get(address)
        assert page.status_code == 200
        assert "Task 1" in page.text and "token" not in str(page.url)
        assert (tmp_path / "opened").read_text(encoding="utf-8").strip() == address
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0, server.stderr.read()
        server.stdout.close()
        server.stderr.close()


def test_an_epoch_that_the_run_lacks_is_refused(run: Path) -> None:
    result = gta("view", run, "--task", "1", "--epoch", "3")
    assert "has 1 epoch; choose an --epoch of these" in str(result.exception)


def test_a_task_needs_a_run(tmp_path: Path) -> None:
    assert "is not a run" in str(gta("view", tmp_path, "--task", "1").exception)


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
