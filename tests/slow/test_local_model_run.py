"""A small real model as judge; from start to report it is in tests/packaging/test_first_hour.py."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judging.builders import task
from tests.judging.killed import gta
from tests.judging.recording_proxy import RecordingProxy, recording_proxy
from tests.judging.stored import settings_file, stored_run
from tests.llm_server import MODEL, llm_server

pytestmark = pytest.mark.measure

LONG = b"The tide rises and falls, and the harbour master writes it down.\n" * 400


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    with llm_server() as url:
        yield url


@pytest.fixture
def proxy(loopback: None, model_server: str) -> Iterator[RecordingProxy]:
    with recording_proxy(model_server) as proxy:
        yield proxy


def test_text_that_is_too_long_is_cut_and_the_judge_is_told(
    tmp_path: Path, proxy: RecordingProxy
) -> None:
    stored_run(tmp_path / "run", [task("1", 1)], {"log.txt": LONG})
    budget = {"max_connections": 1, "timeout": 1800}
    settings_file(tmp_path, proxy.url, MODEL, budget=budget, pictures=False, context_tokens=2048)
    result = gta(tmp_path, "score", "run", "--judge", "local", "--no-preflight")
    assert result.returncode in (0, 1), result.stderr
    calls = proxy.taken()
    assert all("only the first" in json.dumps(call.request) for call in calls)
    assert all(call.reply["usage"]["total_tokens"] <= 2048 for call in calls)
