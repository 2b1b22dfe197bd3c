"""What works with the core alone; `make test-core` runs it where no extra is installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gta_bench.demo import ATOMIC, WORKFLOW


def gta(cwd: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command of a user who has fetched no weights."""
    command = [sys.executable, "-m", "gta_bench.cli", *map(str, arguments)]
    newcomer = os.environ | {"HOME": str(cwd)}
    return subprocess.run(
        command, cwd=cwd, env=newcomer, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("core")


def test_a_run_is_made_scored_and_reported(place: Path) -> None:
    options = ("--mode", "step", "--agent", "gold", "--data", ATOMIC, "--out", "gold")
    ran = gta(place, "run", "atomic", *options)
    assert ran.returncode == 0, ran.stderr
    assert "free-text similarity by wordllama" in ran.stderr
    again = gta(place, "score", "gold", "--json")
    assert json.loads(again.stdout)["metrics"]["tool_acc"] == 100
    assert "gold  5/5  strict" in gta(place, "report", "gold").stdout


def test_tools_that_need_more_than_the_core_say_what_brings_them(place: Path) -> None:
    """Real tools in the loop: what the core has works, and the rest is told before it is called."""
    options = ("--mode", "end-to-end", "--agent", "gold", "--data", ATOMIC, "--out", "tools")
    ran = gta(place, "run", "atomic", *options)
    assert ran.returncode == 0, ran.stderr
    listed = json.loads(gta(place, "tools", "list", "--json").stdout)
    states = {row["name"]: row for row in listed}
    for name in ("Calculator", "DrawBox", "AddText"):
        assert states[name]["available"], states[name]
    for name in ("OCR", "Plot", "Solver"):
        if not states[name]["available"]:
            assert "pip install 'gta-bench[tools]'" in states[name]["reason"]
            assert name in ran.stderr.partition("pip install 'gta-bench[tools]'")[0]


def test_finished_results_are_imported_and_reported(place: Path) -> None:
    folder = place / "results" / "sales"
    folder.mkdir(parents=True)
    (folder / "final.txt").write_text("486 umbrellas, 623 sun hats.", encoding="utf-8")
    ran = gta(place, "import", "folder", "results", "--data", WORKFLOW, "--out", "finished")
    assert ran.returncode == 0, ran.stderr
    assert gta(place, "score", "finished").returncode == 0
    assert "GTA-Workflow" in gta(place, "report", "finished").stdout


@pytest.mark.parametrize("command", ["doctor", "--version", "config show", "tools list"])
def test_what_a_newcomer_looks_at_works(place: Path, command: str) -> None:
    ran = gta(place, *command.split())
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_version_for_bug_reports_names_everything(place: Path) -> None:
    said = gta(place, "--version", "--verbose").stdout
    for name in ("gta-bench", "python", "system", "bwrap", "libreoffice", "[core]", "[report]"):
        assert name in said
    assert gta(place, "--verbose", "--version").stdout == said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered_for(place: Path, shell: str) -> None:
    ran = gta(place, "completion", shell)
    assert "_GTA_COMPLETE" in ran.stdout


def test_completion_completes_commands(place: Path) -> None:
    program = (
        "import os; os.environ.update(_GTA_COMPLETE='bash_complete', COMP_WORDS='gta re', "
        "COMP_CWORD='1')\nfrom gta_bench.cli import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.split() == ["plain,report", "plain,results"]


def test_pages_and_notebooks_can_be_imported_without_statistics(place: Path) -> None:
    program = (
        "import sys; sys.modules['scipy'] = None;"
        "import gta_bench.cli.view, gta_bench.cli.report, gta_bench.web.notebook"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
