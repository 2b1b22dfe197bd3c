"""`gta score RUN --judge` with a real local model: schema-bound verdicts, a kill, and the rest."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judging.builders import asked, task
from tests.judging.killed import judged_with_a_kill
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


def test_a_real_model_judges_is_killed_and_judges_the_rest(
    tmp_path: Path, proxy: RecordingProxy
) -> None:
    """A leaf with a score is never asked for again; long evidence is cut to fit and says so."""
    tasks = (task("1", 3), task("2", 2))
    stored_run(tmp_path / "run", tasks, {"report.txt": REPORT, "log.txt": LONG})
    budget = {"max_connections": 1, "timeout": 900}
    settings_file(tmp_path, proxy.url, MODEL, budget=budget, pictures=False, context_tokens=2048)
    # How many leaves the smallest of models brings into form is chance; `make measure` counts.
    rows = judged_with_a_kill(tmp_path, proxy, kill_after=1, timeout=1200)
    assert len(rows) == 5, "a score or a cause for every leaf"
    assert len({leaf for request in proxy.answered for leaf in asked(request)}) >= 2
    assert "only the first" in json.dumps(proxy.answered[0])
    assert all(request["response_format"]["type"] == "json_schema" for request in proxy.answered)
