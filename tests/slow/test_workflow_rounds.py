"""`gta run workflow` whole: a server plays system and judge, files are rendered, rounds follow."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gta_bench.runs.directory import read_workflow_scores
from tests.chat_server import chat_server
from tests.tasks.workflow_runs import SECRETS, WORDS, write_dataset

pytestmark = pytest.mark.slow

LEAF = re.compile(r"^leaf: (\S+)$", re.MULTILINE)
FAILED = re.compile(r"checkpoint (\d): failed")


def texts(request: dict[str, Any]) -> list[str]:
    parts = [message["content"] for message in request["messages"]]
    return [part if isinstance(part, str) else json.dumps(part) for part in parts]


def judge(request: dict[str, Any]) -> str:
    """10 where the evidence names the leaf's animal, else 2."""
    said = "\n".join(texts(request)).replace("\\n", "\n")
    leaf = LEAF.findall(said)[-1]
    shown = said.rpartition("The evidence ends here")[0]
    score = 10 if WORDS[leaf.partition("~")[0]] in shown else 2
    return json.dumps({"leaf": leaf, "used": ["answer"], "reason": "looked", "score": score})


class Writer:
    """Names the quokka, and later the first animal that is said to be missing."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, request: dict[str, Any]) -> str:
        if request["model"] == "judge":
            return judge(request)
        said = texts(request)
        self.seen += said
        if said[-1].startswith("Response:"):
            return "Thought: done\nFinal Answer: Done."
        failed = FAILED.findall(said[-1])
        animal = list(WORDS.values())[int(failed[0]) - 1] if failed else "quokka"
        page = {"html_code": f"<p>{animal}</p>", "filename": f"{animal}.html"}
        return f"Action: HtmlFileGenerator\nAction Input: {json.dumps(page)}"


def test_a_run_with_feedback_is_one_command_from_the_first_call_to_the_page(
    loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GTA_TEST_KEY_A", "none")
    write_dataset(tmp_path / "data")
    writer = Writer()
    with chat_server(writer) as server:
        tables = [
            f'[models.{name}]\nmodel = "openai-api/local/{name}"\nbase_url = "{server.url}"\n'
            'key_env = "GTA_TEST_KEY_A"\ninput_price = 1\noutput_price = 1\n'
            for name in ("writer", "judge")
        ]
        (tmp_path / "gta.toml").write_text("\n".join(tables), encoding="utf-8")
        options = ["--model", "writer", "--agent", "react", "--judge", "judge", "--data", "data"]
        rounds = ["--feedback-rounds", "1", "--feedback", "score", "--out", "run"]
        result = gta(tmp_path, "run", "workflow", *options, *rounds)
    assert result.returncode == 0, result.stderr
    assert "openai-api/local/judge: 6 leaves asked, 6 scored." in result.stderr
    scores = [read_workflow_scores(tmp_path / folder) for folder in ("run", "run/rounds/2")]
    assert [one.judges[0].strict.leaf_sr for one in scores] == pytest.approx([100 / 3, 200 / 3])
    assert all(one.complete and one.tool_sr == 100 for one in scores)
    assert scores[0].judges[0].usage.cost_usd is not None
    assert not any(secret in text for text in writer.seen for secret in SECRETS.values())
    page = gta(tmp_path, "report", "run/rounds/2", "--html", "page.html")
    assert page.returncode == 0, page.stderr
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("data:image/webp") == 4
    assert "round 2, after feedback of openai-api/local/judge (score)" in text


def gta(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gta_bench.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
