"""A small real model as agent and as judge of real Workflow tasks, from start to report."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judging.builders import task
from tests.judging.killed import gta, run_with_a_kill, scored
from tests.judging.recording_proxy import RecordingProxy, recording_proxy
from tests.judging.stored import settings_file, stored_run
from tests.llm_server import MODEL, llm_server

pytestmark = pytest.mark.slow

# The tasks with the fewest leaves: 7 + 7; all twenty are measured by hand (tests/measure).
TASKS = ("127", "98")
LEAVES = 14
# The descriptions of all 37 tools would take this model longer to read than all the rest.
TOOLS = ("OCR", "ImageDescription", "Calculator", "Plot", "HtmlFileGenerator", "XlsxFileGenerator")
LONG = b"The tide rises and falls, and the harbour master writes it down.\n" * 400


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    with llm_server() as url:
        yield url


@pytest.fixture
def proxy(loopback: None, model_server: str) -> Iterator[RecordingProxy]:
    with recording_proxy(model_server) as proxy:
        yield proxy


def few_tools(released: Path, folder: Path) -> Path:
    """The released tasks and files, with some of the tools."""
    folder.mkdir()
    (folder / "resources").symlink_to(released / "resources")
    (folder / "end.json").write_bytes((released / "end.json").read_bytes())
    tools = json.loads((released / "toolmeta.json").read_text(encoding="utf-8"))
    some = {name: tools[name] for name in TOOLS}
    (folder / "toolmeta.json").write_text(json.dumps(some), encoding="utf-8")
    return folder


def test_two_tasks_from_the_first_call_to_the_report_with_a_kill_between(
    tmp_path: Path, workflow_dir: Path, proxy: RecordingProxy
) -> None:
    data = few_tools(workflow_dir, tmp_path / "data")
    whole = run_with_a_kill(tmp_path, data, ",".join(TASKS), proxy, kill_after=LEAVES // 3)
    assert len(whole.rows) == LEAVES
    assert len(scored(whole.rows)) >= 0.9 * LEAVES, [row.verdict for row in whole.rows.values()]
    assert "GTA-Workflow" in whole.printed
    judged = [call.request for call in whole.calls if call.request.get("response_format")]
    assert all(request["response_format"]["type"] == "json_schema" for request in judged)
    assert 2 <= len(whole.calls) - len(judged) <= 3 * 2, "three turns a task"
    assert "none of 1 pictures, because you read text only" in json.dumps(judged)
    page = gta(tmp_path, "report", "run", "--html", "page.html")
    assert page.returncode == 0, page.stderr
    shown = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert shown.count('class="said"') == LEAVES


def test_text_that_is_too_long_is_cut_and_the_judge_is_told(
    tmp_path: Path, proxy: RecordingProxy
) -> None:
    stored_run(tmp_path / "run", [task("1", 2)], {"log.txt": LONG})
    budget = {"max_connections": 1, "timeout": 1800}
    settings_file(tmp_path, proxy.url, MODEL, budget=budget, pictures=False, context_tokens=2048)
    result = gta(tmp_path, "score", "run", "--judge", "local", "--no-preflight")
    assert result.returncode in (0, 1), result.stderr
    calls = proxy.taken()
    assert all("only the first" in json.dumps(call.request) for call in calls)
    assert all(call.reply["usage"]["total_tokens"] <= 2048 for call in calls)
