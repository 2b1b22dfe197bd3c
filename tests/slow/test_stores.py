"""Runs that lie wholly in an S3 store: killed, cut off, resumed, judged, reported, exported."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.errors import StoreError, WorkFailed
from gta_bench.runs.directory import log_folder, read_workflow_scores
from gta_bench.runs.logs import count_finished, list_logs, read_attempts
from gta_bench.runs.store import StorePath, parts_of, store_path
from gta_bench.runs.verdicts import VERDICTS
from tests.chat_server import ChatServer, chat_server
from tests.s3_server import BUCKET, S3Server, s3_server
from tests.slow.test_workflow_rounds import judge, texts
from tests.tasks.workflow_runs import write_dataset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("loopback"),
    # A command's connections end with its process; here several commands share one.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

PAGE = {"html_code": "<p>quokka</p>", "filename": "quokka.html"}


class Player:
    """System and judge; the system works on a task only while `gate` is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.begun = 0

    def __call__(self, request: dict[str, Any]) -> str:
        if request["model"] == "judge":
            return judge(request)
        if texts(request)[-1].startswith("Response:"):
            return "Thought: done\nFinal Answer: Done."
        self.begun += 1
        if self.begun > 1:
            self.gate.wait(300)
        return f"Action: HtmlFileGenerator\nAction Input: {json.dumps(PAGE)}"


@pytest.fixture
def player() -> Player:
    return Player()


@pytest.fixture
def chat(player: Player, loopback: None) -> Iterator[ChatServer]:
    with chat_server(player) as server:
        yield server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def folder(tmp_path: Path, chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dataset and settings, in which commands run."""
    write_dataset(tmp_path / "data")
    tables = [
        f'[models.{name}]\nmodel = "openai-api/local/{name}"\nbase_url = "{chat.url}"\n'
        'key_env = "GTA_TEST_KEY_A"\n'
        for name in ("writer", "judge")
    ]
    (tmp_path / "gta.toml").write_text("\n".join(tables), encoding="utf-8")
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def work(out: StorePath, *options: str) -> list[str]:
    """The command of a run, one task after the other."""
    chosen = ["--model", "writer", "--agent", "react", "--data", "data", "--max-connections", "1"]
    return ["run", "workflow", *chosen, "--out", str(out), *options]


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_run_in_a_store_is_killed_resumed_judged_reported_and_exported(
    s3: S3Server, folder: Path, player: Player
) -> None:
    out, local = store_path(f"s3://{BUCKET}/one"), folder / "run"
    player.gate.clear()
    process = subprocess.Popen(
        [sys.executable, "-m", "gta_bench.cli", *work(out)], env=dict(os.environ)
    )
    end = time.monotonic() + 300
    while (player.begun < 2 or not count_finished(log_folder(out))) and time.monotonic() < end:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    player.gate.set()
    assert count_finished(log_folder(out)) == 1, "the finished unit is in the store"
    before = player.begun
    assert gta(*work(out)).exit_code == 0
    assert (count_finished(log_folder(out)), player.begun - before) == (2, 1)

    judged = gta("score", str(out), "--judge", "judge")
    assert judged.exit_code == 0, judged.output
    assert not (out / VERDICTS).is_file() and parts_of(out / VERDICTS).is_dir()
    assert gta(*work(local, "--judge", "judge")).exit_code == 0
    here, there = read_workflow_scores(local), read_workflow_scores(out)
    assert here.judges[0].tasks == there.judges[0].tasks
    assert here.judges[0].strict == there.judges[0].strict

    assert str(out) in gta("report", str(out)).output
    page = gta("report", str(out), "--html", f"s3://{BUCKET}/page.html")
    assert page.exit_code == 0, page.output
    assert b"quokka" in store_path(f"s3://{BUCKET}/page.html").read_bytes()
    tables = f"s3://{BUCKET}/tables"
    exported = gta("results", "export", str(out), str(local), "--out", tables)
    assert "2 runs, 4 samples, 12 verdicts" in exported.output, exported.output
    rows = json.loads(gta("report", tables, "--format", "json").stdout)
    assert rows[0]["judges"] == rows[1]["judges"]
    again = gta("results", "export", str(out), "--out", tables)
    assert "is not empty" in str(again.exception)


@pytest.mark.measure
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["inline", "processes"])
def test_a_store_that_goes_away_stops_the_run_and_nothing_is_lost(
    s3: S3Server, folder: Path, player: Player, workers: tuple[str, ...]
) -> None:
    out = store_path(f"s3://{BUCKET}/two-{len(workers)}")
    player.gate.clear()

    def cut() -> None:
        """The line breaks while the second task is at work."""
        end = time.monotonic() + 300
        while player.begun < 2 and time.monotonic() < end:
            time.sleep(0.05)
        s3.stop()
        player.gate.set()

    thread = threading.Thread(target=cut)
    thread.start()
    stopped = gta(*work(out, *workers))
    thread.join()
    assert isinstance(stopped.exception, StoreError | WorkFailed), stopped.output
    assert stopped.exception.exit_code == 3
    assert "Everything already in the store is safe; run the same command again" in str(
        stopped.exception
    )
    s3.start()
    before = player.begun
    assert count_finished(log_folder(out)) == 1
    assert gta(*work(out, *workers)).exit_code == 0
    assert (count_finished(log_folder(out)), player.begun - before) == (2, 1)


@pytest.mark.measure
def test_a_slow_store_slows_the_run_and_nothing_is_done_twice(
    s3: S3Server, folder: Path, player: Player
) -> None:
    """A write takes longer than the pause between two looks at what the workers do."""
    out = store_path(f"s3://{BUCKET}/slow")
    s3.delay = 0.6
    done = gta(*work(out, "--workers", "2", "--no-preflight"))
    s3.delay = 0.0
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert (count_finished(log_folder(out)), player.begun) == (2, 2)
    assert len(list_logs(log_folder(out))) == 1
    attempts = read_attempts(out)
    assert attempts is not None
    assert [one.number for one in attempts.values()] == [1, 1]


def test_a_bucket_that_is_not_there_and_rounds_in_a_store_are_told(
    s3: S3Server, folder: Path
) -> None:
    missing = gta(*work(store_path("s3://nobodys/run")))
    assert isinstance(missing.exception, StoreError)
    assert "Check that the bucket exists" in str(missing.exception)
    unread = gta("report", f"s3://{BUCKET}/nothing")
    assert "is not a run" in str(unread.exception)
    rounds = work(store_path(f"s3://{BUCKET}/r"), "--judge", "judge", "--feedback-rounds", "1")
    assert "use a local folder" in str(gta(*rounds).exception)
