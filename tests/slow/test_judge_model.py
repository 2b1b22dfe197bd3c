"""`gta score RUN --judge` with a real local model: schema-bound verdicts, a kill, and the rest."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.records.verdicts import Scored
from gta_bench.runs.verdicts import VERDICTS, read_verdicts
from tests.judging.builders import task
from tests.judging.recording_proxy import RecordingProxy, recording_proxy
from tests.judging.stored import settings_file, stored_run
from tests.llm_server import MODEL, llm_server

pytestmark = pytest.mark.slow

REPORT = b"# Tides\n\nHigh water comes twice a day, because the Moon pulls the sea.\n" * 3
LONG = b"The tide rises and falls, and the harbour master writes it down.\n" * 400


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    with llm_server(threads=1) as url:
        yield url


@pytest.fixture
def proxy(loopback: None, model_server: str) -> Iterator[RecordingProxy]:
    with recording_proxy(model_server) as proxy:
        yield proxy


def start(folder: Path) -> subprocess.Popen[str]:
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


def test_a_real_model_judges_is_killed_and_judges_the_rest(
    tmp_path: Path, proxy: RecordingProxy
) -> None:
    """A leaf with a verdict is never asked for again; long evidence is cut to fit and says so."""
    tasks = (task("1", 4), task("2", 4))
    run = stored_run(tmp_path / "run", tasks, {"report.md": REPORT, "log.txt": LONG})
    settings_file(
        tmp_path,
        proxy.url,
        MODEL,
        budget={"max_connections": 1, "timeout": 900},
        pictures=False,
        context_tokens=3072,
    )
    process = start(tmp_path)
    while len(read_verdicts(run)) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = {
        key: row for key, row in read_verdicts(run).items() if isinstance(row.verdict, Scored)
    }
    assert 0 < len(before) < 8
    with proxy.lock:
        proxy.answered.clear()

    _, words = (second := start(tmp_path)).communicate(timeout=1200)
    assert second.returncode in (0, 1), words
    after = read_verdicts(run)
    scored = {key for key, row in after.items() if isinstance(row.verdict, Scored)}
    assert len(after) == 8
    assert len(scored) >= 7, [row.verdict for row in after.values()]
    lines = [json.loads(line) for line in (run / VERDICTS).read_text().splitlines()]
    times = Counter(
        (line["key"]["task"], line["key"]["leaf"])
        for line in lines
        if line["verdict"]["type"] == "scored"
    )
    assert set(times.values()) == {1}
    assert {key: after[key] for key in before} == before
    sent = [json.dumps(request) for request in proxy.answered]
    for key in before:
        assert not any(
            f"leaf: {key.leaf}\\n" in text and f"Write report {key.task}." in text for text in sent
        )
    assert "only the first" in sent[0]
    assert all(request["response_format"]["type"] == "json_schema" for request in proxy.answered)
