"""What a measured system sees: in the manifest, and refused where it would be gold."""

from pathlib import Path

import pytest

from gta_bench.confine.walls import Python
from gta_bench.errors import UsageError
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.exposure import ALL, list_shown_paths, require_hidden
from gta_bench.runs.directory import read_manifest
from tests.harnesses.test_command_runs import gta
from tests.needs import needs


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything in it, as people have them; home is another one."""
    project, home = tmp_path / "project", tmp_path / "home"
    for name in ("data/gta_workflow", "runs/one", "agent/deep"):
        (project / name).mkdir(parents=True)
    (project / "agent" / "agent.py").write_text("print('hello')\n")
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    return project


def harness(target: str = "python3 agent/agent.py", *readable: Path) -> Harness:
    return Harness(kind="command", target=target, readable=readable)


def hidden(project: Path) -> dict[str, Path]:
    return {"the dataset": project / "data" / "gta_workflow", "the run": project / "runs" / "one"}


@pytest.mark.parametrize(
    ("shown", "what"),
    [
        (".", "the dataset"),
        ("data", "the dataset"),
        ("data/gta_workflow/", "the dataset"),
        ("data/gta_workflow/resources", "the dataset"),
        ("runs", "the run"),
        ("runs/one/logs", "the run"),
        ("link", "the dataset"),
        ("../home", r"keys \(~/.ssh\)"),
        ("/", "the dataset"),
    ],
)
def test_what_holds_gold_or_keys_is_not_shown(project: Path, shown: str, what: str) -> None:
    for name in ("data/gta_workflow/resources", "runs/one/logs"):
        (project / name).mkdir()
    (project / "link").symlink_to("data")
    with pytest.raises(UsageError, match=f"The measured system could read.*{what}"):
        require_hidden(harness("true", (project / shown).absolute()), hidden(project))
    if Path(project / shown).is_dir() and shown != "/":
        with pytest.raises(UsageError, match=what):
            require_hidden(harness(f"python3 {project / shown}"), hidden(project))


def test_what_a_harness_needs_is_shown(project: Path) -> None:
    require_hidden(harness("python3 agent/agent.py", project / "agent"), hidden(project))


def test_a_jail_that_would_show_the_dataset_is_refused(project: Path) -> None:
    packages = Path(Python.current().roots[-1])
    with pytest.raises(UsageError, match="the dataset"):
        require_hidden(None, {"the dataset": packages / "data"})


def test_the_list_names_paths_as_people_do(project: Path) -> None:
    shown = list_shown_paths(harness("python3 agent/agent.py", Path.home() / ".ssh"))
    assert "/usr" in shown
    assert "./agent/agent.py" in shown
    assert "~/.ssh" in shown
    assert set(Python.current().roots) <= set(shown)
    assert list_shown_paths(Harness(kind="bridged", target="a:b")) == (ALL,)


@needs("bwrap")
def test_a_run_lists_what_was_shown_and_refuses_gold(workflow_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("run", "workflow", "--data", workflow_dir, "--limit", "1", "--out", out)
    done = gta(*options, "--harness", "echo done")
    assert done.exit_code == 0, done.output
    assert "/usr" in read_manifest(out).shown
    refused = gta(*options, "--harness", "echo done", "--harness-readable", workflow_dir.parent)
    assert isinstance(refused.exception, UsageError)
