"""A system whose answer or files contain the canary of the dataset has seen the dataset."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from openpyxl import Workbook

import gta_bench
from gta_bench.cli import app
from gta_bench.running.canary_scan import SCANNED
from tests.authored import write_task
from tests.content.conftest import jail

__all__ = ["jail"]
PLAIN = 'format = 1\nid = "q3-sales"\n[[leaf]]\nid = "a"\nsays = "x"\n'


def gta(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def write_work(task: str, answer: str) -> Path:
    work = Path("results") / task
    work.mkdir(parents=True)
    (work / "final.txt").write_text(answer)
    return work


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jail: object) -> str:
    """The canary of a dataset with two tasks."""
    monkeypatch.chdir(tmp_path)
    for name in ("clean", "leaky"):
        write_task(Path("tasks"), PLAIN, name=name)
    return gta("data", "canary", "tasks").stdout.strip()


def test_answers_and_files_with_the_canary_are_named_with_their_unit(canary: str) -> None:
    write_work("clean", "Done.").joinpath("a.txt").write_text("Nothing.")
    work = write_work("leaky", f"I know {canary.upper()}.")
    (work / "notes.md").write_text(f"# {canary}")
    (work / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    book = Workbook()
    book.create_sheet("Notes").append([f"Task {canary}"])
    book.save(work / "report.xlsx")
    assert gta("import", "folder", "results", "--data", "tasks", "--out", "run").exit_code == 0
    assert gta_bench.manifest("run").canaries == (canary,)
    first = gta("score", "run")
    told = [line for line in first.stderr.splitlines() if line.startswith("Warning: task ")]
    assert [line.split(" contains")[0] for line in told] == [
        "Warning: task leaky: the answer",
        "Warning: task leaky: outputs/notes.md",
        "Warning: task leaky: outputs/report.xlsx",
    ]
    before = Path("run", SCANNED).stat().st_mtime_ns
    again = gta("score", "run")
    assert [line for line in again.stderr.splitlines() if line.startswith("Warning")] == told
    assert Path("run", SCANNED).stat().st_mtime_ns == before


def test_a_run_learns_a_canary_that_its_dataset_got_later(canary: str) -> None:
    write_work("clean", "Done.")
    write_work("leaky", f"I know {canary}.")
    for name in ("clean", "leaky"):
        file = Path("tasks", name, "task.toml")
        file.write_text(PLAIN.replace("q3-sales", name))
    Path("tasks/README.md").rename("README.md")
    gta("import", "folder", "results", "--data", "tasks", "--out", "run")
    assert "Warning: task" not in gta("score", "run").stderr
    Path("README.md").rename("tasks/README.md")
    assert "task leaky: the answer" in gta("score", "run", "--data", "tasks").stderr


def test_what_cannot_be_read_here_is_read_again_later(
    canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gta_bench.errors import ToolUnavailable
    from gta_bench.tools import equipment

    write_work("clean", "Done.").joinpath("a.txt").write_text("Nothing.")
    gta("import", "folder", "results", "--data", "tasks", "--out", "run")

    async def find_none(**_: object) -> None:
        raise ToolUnavailable("No jail works here.", fix="Install bubblewrap.")

    monkeypatch.setattr(equipment, "find_jail", find_none)
    assert "Warning: task" not in gta("score", "run").stderr
    assert '"files": {}' in Path("run", SCANNED).read_text()
