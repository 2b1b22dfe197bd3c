"""`gta score run --judge local` in a process of its own, killed in the middle and run again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from gta_bench.records.verdicts import Scored, VerdictKey, VerdictRow
from gta_bench.runs.verdicts import VERDICTS, read_verdicts
from tests.judging.recording_proxy import RecordingProxy


def judged_with_a_kill(
    folder: Path, proxy: RecordingProxy, *, kill_after: int, timeout: float
) -> Mapping[VerdictKey, VerdictRow]:
    """The verdicts in the end; no leaf that had a score before the kill was asked for again."""
    run = folder / "run"
    process = _start(folder)
    while len(scored(read_verdicts(run))) < kill_after:
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = scored(read_verdicts(run))
    assert before
    with proxy.lock:
        proxy.answered.clear()

    second = _start(folder)
    _, words = second.communicate(timeout=timeout)
    assert second.returncode in (0, 1), words
    after = read_verdicts(run)
    assert {key: after[key] for key in before} == before
    lines = [json.loads(line) for line in (run / VERDICTS).read_text("utf-8").splitlines()]
    times = Counter(
        (line["key"]["task"], line["key"]["leaf"], line["key"]["judge"])
        for line in lines
        if line["verdict"]["type"] == "scored"
    )
    assert set(times.values()) == {1}
    return after


def scored(rows: Mapping[VerdictKey, VerdictRow]) -> dict[VerdictKey, VerdictRow]:
    return {key: row for key, row in rows.items() if isinstance(row.verdict, Scored)}


def _start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gta_bench.cli", "score", "run", "--judge", "local"]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "GTA_TEST_KEY_A": "none"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
