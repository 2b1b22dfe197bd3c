"""`gta run atomic --mode step` with a kill and with a provider that fails.

A real model is measured by tests/packaging/test_first_hour.py.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.errors import RunError
from gta_bench.records.units import AtomicUnit
from gta_bench.runs.logs import count_finished, read_units
from tests.chat_server import ChatServer, chat_server
from tests.needs import needs
from tests.node_tokens import o200k_base

pytestmark = pytest.mark.slow

GTA = [sys.executable, "-m", "gta_bench.cli"]


def settings(folder: Path, url: str, model: str, **budget: int) -> None:
    lines = [f"{name} = {value}" for name, value in budget.items()]
    (folder / "gta.toml").write_text(
        f'[models.local]\nmodel = "openai-api/local/{model}"\nbase_url = "{url}"\n'
        'key_env = "GTA_TEST_KEY_A"\nmax_tokens = 64\n[budget]\n' + "\n".join(lines),
        encoding="utf-8",
    )


def command(data: Path, *options: str) -> list[str]:
    chosen = ["--model", "local", "--agent", "react", "--data", str(data), "--out", "run"]
    return [*GTA, "run", "atomic", "--mode", "step", *chosen, *options]


def run(folder: Path, data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(data, *options),
        cwd=folder,
        env={**os.environ, "GTA_TEST_KEY_A": "none"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.fixture
def provider(loopback: None) -> Iterator[ChatServer]:
    with chat_server(lambda request: "Thought: I know.\nFinal Answer: 7") as server:
        yield server


def test_a_run_is_killed_and_continued(
    tmp_path: Path, atomic_dir: Path, provider: ChatServer
) -> None:
    """No finished sample is lost by the kill, and none is run twice."""
    settings(tmp_path, provider.url, "m", max_connections=1)
    provider.delay = 1.0
    process = subprocess.Popen(
        command(atomic_dir, "--tasks", "0:4"),
        cwd=tmp_path,
        env={**os.environ, "GTA_TEST_KEY_A": "none"},
        start_new_session=True,
    )
    logs = tmp_path / "run" / "logs"
    try:
        while finished(logs) < 1:
            assert process.poll() is None
            time.sleep(0.5)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = {
        unit.task.id: unit for unit in read_units(logs, _ids(4), 1, AtomicUnit).units if unit.trace
    }
    assert 1 <= len(before) < 4

    provider.delay = 0.0
    result = run(tmp_path, atomic_dir, "--tasks", "0:4")
    assert result.returncode == 0, result.stderr
    assert "run  4/4  strict" in result.stdout
    after = {unit.task.id: unit for unit in read_units(logs, _ids(4), 1, AtomicUnit).units}
    for task, unit in before.items():
        assert after[task] == unit, f"task {task} was run again"
    assert sum(unit.usage.model_calls for unit in after.values()) == sum(
        len(unit.task.steps) for unit in after.values()
    )


def finished(logs: Path) -> int:
    """How many units are finished; a log that is being written in this moment does not tell."""
    try:
        return count_finished(logs)
    except RunError:
        return 0


def _ids(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def test_a_provider_that_stumbles_is_asked_again(
    tmp_path: Path, atomic_dir: Path, provider: ChatServer
) -> None:
    settings(tmp_path, provider.url, "m", max_connections=4, max_retries=3, timeout=3)
    provider.behaviors = ["429", "500", "cut", "hang", "429"]
    result = run(tmp_path, atomic_dir, "--tasks", "0:6")
    assert result.returncode == 0, result.stderr
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    assert (scores["n"], scores["n_units"]) == (6, 6)
    assert scores["usage"]["retries"] >= 4
    steps = sum(
        len(unit.task.steps)
        for unit in read_units(tmp_path / "run" / "logs", _ids(6), 1, AtomicUnit).units
    )
    assert scores["usage"]["model_calls"] == steps
    assert provider.most_at_once <= 4


def test_a_provider_that_is_down_gives_no_zero_and_the_same_command_completes_the_run(
    tmp_path: Path, atomic_dir: Path, provider: ChatServer
) -> None:
    settings(tmp_path, provider.url, "m", max_connections=2, max_retries=0, timeout=3)
    provider.behaviors = ["ok"] * 12
    provider.forever = "500"
    result = run(tmp_path, atomic_dir, "--tasks", "0:6")
    assert result.returncode == 1, result.stderr
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    assert 0 < scores["n"] < scores["n_units"] == 6
    assert len(scores["unscored"]) == 6 - scores["n"]
    assert "so the run is not rankable" in result.stderr
    finished = {unit["task"] for unit in scores["units"]}

    provider.forever = None
    answered = provider.answered
    result = run(tmp_path, atomic_dir, "--tasks", "0:6")
    assert result.returncode == 0, result.stderr
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    assert (scores["n"], scores["unscored"]) == (6, [])
    steps = {
        unit.task.id: len(unit.task.steps)
        for unit in read_units(tmp_path / "run" / "logs", _ids(6), 1, AtomicUnit).units
    }
    again = sum(count for task, count in steps.items() if task not in finished)
    assert provider.answered - answered == again


@needs("npm")
def test_inspect_runs_the_task_by_its_own_name(tmp_path: Path, atomic_dir: Path) -> None:
    """The engine's mock model counts tokens with a vocabulary that it would download."""
    vocabulary = tmp_path / "tiktoken"
    vocabulary.mkdir()
    address = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    (vocabulary / hashlib.sha1(address.encode()).hexdigest()).write_bytes(o200k_base(tmp_path))
    inspect = Path(sys.executable).parent / "inspect"
    options = ["--model", "mockllm/model", "--limit", "20", "--log-dir", "logs"]
    result = subprocess.run(
        [inspect, "eval", "gta_bench/atomic_step", "-T", f"data={atomic_dir}", *options],
        cwd=tmp_path,
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(vocabulary), "INSPECT_DISPLAY": "plain"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "strict_inst_acc" in result.stdout
    found = read_units(tmp_path / "logs", _ids(20), 1, AtomicUnit)
    assert len(found.units) == 20
    assert all(unit.failure is None for unit in found.units)
