"""How replies ended, from a server's words to the terminal and the report."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from tests.builders import atomic_task, write_atomic
from tests.chat_server import ChatServer, chat_server

pytestmark = pytest.mark.usefixtures("loopback")


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomic(tmp_path / "data" / "gta_atomic", {"0": atomic_task(), "1": atomic_task()})


def run(server: ChatServer, model: str = "any") -> Result:
    Path("gta.toml").write_text(
        f'[models.local]\nmodel = "openai-api/local/{model}"\nbase_url = "{server.url}"\n'
        "[budget]\nmax_retries = 0\n",
        encoding="utf-8",
    )
    options = ("--similarity", "exact-or-half", "--model", "local", "--out", "runs/a")
    return gta("run", "atomic", "--mode", "step", *options)


def test_calls_as_text_are_named_with_the_way_out() -> None:
    """36 of 51 steps were "answered instead of calling", and nothing said why."""
    written = json.dumps({"name": "OCR", "arguments": {"image": "inputs/menu.jpg"}})
    with chat_server(lambda request: written) as server:
        result = run(server)
    assert result.exit_code == 0, result.output
    assert "call as text 4 (of 4 model calls)" in result.stderr
    assert "use --agent react" in result.stderr
    scores = json.loads(Path("runs/a/scores.json").read_text(encoding="utf-8"))
    assert scores["stops"] == {"call as text": 4}
    assert scores["strict"]["malformed"] == 4
    assert {failure["cause"] for failure in scores["failures"]} == {"format"}
    assert "replies   call as text 4\n" in gta("status", "runs/a").stdout
    page = gta("report", "runs/a", "--format", "markdown").stdout
    assert "call as text 4 (of 4 model calls)" in page
    (summary,) = json.loads(gta("report", "runs/a", "--format", "json").stdout)
    assert any("call as text 4" in remark for remark in summary["remarks"])


def test_what_was_added_to_the_prefix_is_in_the_manifest_and_said() -> None:
    with chat_server() as server:
        result = run(server, "kimi-k2-thinking")
    manifest = json.loads(Path("runs/a/run.json").read_text(encoding="utf-8"))
    (note,) = manifest["notes"]
    assert note == "step mode: the reference's calls carry an empty reasoning_content."
    assert "carry an empty reasoning_content" in result.stderr
