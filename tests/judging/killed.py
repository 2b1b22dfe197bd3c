"""A real model as agent and as judge: `gta run workflow`, killed while it judges, and run again."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gta_bench.datasets.workflow import load_workflow
from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.verdicts import VERDICTS, read_verdicts
from tests.judging.builders import asked
from tests.judging.recording_proxy import Exchange, RecordingProxy
from tests.judging.stored import settings_file
from tests.llm_server import MODEL

Rows = Mapping[VerdictKey, VerdictRow]
MOST_TIMES = 2


class WholeRun(NamedTuple):
    """The verdicts in the end, what the command printed, and every call in its order."""

    rows: Rows
    printed: str
    calls: list[Exchange]


def run_with_a_kill(
    folder: Path, data: Path, tasks: str, proxy: RecordingProxy, *, kill_after: int
) -> WholeRun:
    """From the first call to the report; nothing that is finished is asked for again.

    The kill comes when so many leaves have a score. Then the same command goes on, and once more
    for what the smallest of models could not bring into form.
    """
    run = folder / "run"
    settings_file(
        folder,
        proxy.url,
        MODEL,
        budget={"max_connections": 1, "timeout": 1800},
        max_tokens=160,
        pictures=False,
        context_tokens=8192,
    )
    process = _start(folder, data, tasks)
    while len(scored(read_verdicts(run))) < kill_after:
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    calls = proxy.taken()
    for _ in range(MOST_TIMES):
        before = scored(read_verdicts(run))
        process = _start(folder, data, tasks)
        printed, words = process.communicate()
        assert process.returncode in (0, 1), words
        after = read_verdicts(run)
        later = proxy.taken()
        assert all(call.request.get("response_format") for call in later), "no task is run twice"
        assert {key: after[key] for key in before} == before
        known = {(key.task, key.leaf) for key in before}
        assert not known & _judged(later, data), "no leaf is judged twice"
        calls += later
        if process.returncode == 0:
            break
    _check_one_score_each(run)
    return WholeRun(after, printed, calls)


def scored(rows: Rows) -> dict[VerdictKey, VerdictRow]:
    return {key: row for key, row in rows.items() if isinstance(row.verdict, Scored)}


def gta(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    process = _process(folder, *arguments)
    printed, words = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, printed, words)


def _start(folder: Path, data: Path, tasks: str) -> subprocess.Popen[str]:
    chosen = ["--model", "local", "--agent", "react", "--max-turns", "3", "--max-tokens", "48"]
    place = ["--judge", "local", "--tasks", tasks, "--data", str(data), "--out", "run"]
    place.append("--no-preflight")  # all calls are counted
    return _process(folder, "run", "workflow", *chosen, *place)


def _process(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gta_bench.cli", *arguments],
        cwd=folder,
        env={**os.environ, "GTA_TEST_KEY_A": "none"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _judged(calls: list[Exchange], data: Path) -> set[tuple[str, str]]:
    """The tasks and leaves that a judge was asked about."""
    tasks = load_workflow(data).tasks.values()
    return {
        (task.id, leaf)
        for call in calls
        for task in tasks
        if task.request in call.request["messages"][1]["content"][0]["text"]
        for leaf in asked(call.request)
    }


def _check_one_score_each(run: Path) -> None:
    lines = (run / VERDICTS).read_text("utf-8").splitlines()
    rows = [VerdictRow.model_validate_json(line) for line in lines]
    times = Counter(row.key for row in rows if isinstance(row.verdict, Scored))
    assert set(times.values()) == {1}
