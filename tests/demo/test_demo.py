import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.cli.demo import DATA
from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.checks import verify


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_the_demo_runs_real_tools_and_ends_with_a_report() -> None:
    result = gta("demo")
    assert result.exit_code == 0, result.output
    assert "the model is SCRIPTED" in result.stderr
    assert re.search(r"gta-demo +3/3 +strict +100\.00 +100\.00", result.stdout)
    scores = json.loads(Path("gta-demo/scores.json").read_text(encoding="utf-8"))
    used = {use["tool"]: (use["done"], use["backends"]) for use in scores["tools"]}
    assert used.keys() == {"OCR", "Calculator", "Solver", "Plot"}
    assert all(backends for _, backends in used.values())
    assert list(Path("gta-demo/files/chart/outputs").glob("*.png"))
    assert "mockllm/scripted" in Path("gta-demo/report.md").read_text(encoding="utf-8")


def test_the_demo_does_not_touch_what_is_there() -> None:
    Path("gta-demo").mkdir()
    result = gta("demo")
    assert "exists already" in str(result.exception)


def test_the_demos_tasks_are_sound() -> None:
    dataset = load_atomic(DATA)
    assert list(dataset.tasks) == ["receipt", "homework", "chart"]
    findings = [finding.check for finding in verify(dataset).findings]
    assert set(findings) <= {"not-the-release", "call-without-thought"}
