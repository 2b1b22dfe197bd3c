import json
import shutil
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from gta_bench.cli import app
from gta_bench.errors import UsageError
from tests.authored import write_task
from tests.datasets.test_remote import COMMIT, git, hub, repository
from tests.file_server import FileServer

__all__ = ["hub", "repository"]
PLAIN = 'format = 1\nid = "q3-sales"\n[[leaf]]\nid = "a"\nsays = "x"\n'


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GTA_DATA", raising=False)


def test_a_folder_gets_a_name_that_is_listed_and_used() -> None:
    write_task(Path("tasks"), PLAIN)
    Path("gta.toml").write_text("[judge]\nrepeats = 2")
    run = CliRunner().invoke
    added = run(app, ["data", "add", "acme", "tasks"])
    assert (added.exit_code, "added acme, 1 task." in added.stderr) == (0, True)
    assert Path("gta.toml").read_text().startswith("[judge]\nrepeats = 2\n\n[datasets.acme]\n")
    listed = json.loads(run(app, ["data", "list", "--json"]).stdout)
    assert [(one["name"], one["tasks"], one["problem"]) for one in listed if one["tasks"]] == [
        ("acme", 1, None)
    ]
    assert "acme" in run(app, ["data", "list"]).stdout
    assert run(app, ["data", "verify", "workflow", "--data", "acme"]).exit_code == 0
    for name in ("acme", "atomic", "a b"):
        assert isinstance(run(app, ["data", "add", name, "tasks"]).exception, UsageError)
    (Path("tasks") / "q3-sales" / "request.md").write_text("Another request.")
    changed = run(app, ["data", "stats", "workflow", "--data", "acme"])
    assert "changed since it was added" in str(changed.exception)
    assert "acme      changed since it was added" in run(app, ["data", "list"]).stdout


def test_a_dataset_that_cannot_be_read_is_listed_with_its_problem() -> None:
    write_task(Path("tasks"), "format = 2\n")
    Path("gta.toml").write_text('[datasets.acme]\npath = "tasks"\n')
    listed = json.loads(CliRunner().invoke(app, ["data", "list", "--json"]).stdout)
    problem = next(one["problem"] for one in listed if one["name"] == "acme")
    assert problem.startswith("q3-sales/task.toml, field 'format'")


def test_tasks_are_converted_both_ways() -> None:
    write_task(Path("tasks"), PLAIN)
    run = CliRunner().invoke
    there = run(app, ["data", "convert", "tasks", "--out", "released"])
    assert "1 task in the released layout in released." in there.stderr
    (Path("released") / "resources/q3-sales/sales.csv").unlink()
    back = run(app, ["data", "convert", "released", "--out", "again"])
    assert "1 task folder in again." in back.stderr and "1 input missing" in back.stderr


def test_a_dataset_of_a_git_repository_is_added_listed_used_and_downloaded_again(
    repository: Path,
) -> None:
    run = CliRunner().invoke
    added = run(app, ["data", "add", "acme", f"git+{repository}", "--folder", "tasks"])
    assert "added acme, 1 task." in added.stderr, added.exception
    commit = git(repository, "rev-parse", "HEAD")
    entry = tomllib.loads(Path("gta.toml").read_text())["datasets"]["acme"]
    assert (entry["git"], entry["revision"], entry["folder"], entry["path"]) == (
        str(repository),
        commit,
        "tasks",
        "data/acme",
    )
    assert f"@{commit[:12]}" in run(app, ["data", "list"]).stdout
    assert run(app, ["data", "verify", "workflow", "--data", "acme"]).exit_code == 0
    assert "already there and unchanged" in run(app, ["data", "fetch", "acme"]).stderr
    (Path("data/acme/q3-sales/request.md")).write_text("Another request.")
    changed = run(app, ["data", "stats", "workflow", "--data", "acme"])
    assert "changed since it was added" in str(changed.exception)
    shutil.rmtree("data/acme")
    missing = run(app, ["data", "stats", "workflow", "--data", "acme"])
    assert "Run `gta data fetch acme`." in str(missing.exception)
    assert "1 task, downloaded" in run(app, ["data", "fetch", "acme"]).stderr
    assert run(app, ["data", "stats", "workflow", "--data", "acme"]).exit_code == 0


def test_a_dataset_of_the_hub_is_added_from_the_endpoint_of_the_environment(
    hub: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    run = CliRunner().invoke
    added = run(app, ["data", "add", "acme", "hf:acme/tasks", "--folder", "data"])
    assert "added acme, 1 task." in added.stderr, added.exception
    entry = tomllib.loads(Path("gta.toml").read_text())["datasets"]["acme"]
    assert (entry["hf"], entry["revision"]) == ("acme/tasks", COMMIT)
    assert run(app, ["data", "verify", "workflow", "--data", "acme"]).exit_code == 0
    shown = json.loads(run(app, ["config", "show", "--json"]).stdout)
    assert "HF_ENDPOINT" in json.dumps(shown)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("data", "add", "x", "tasks", "--revision", "v1"), "--revision and --folder need"),
        (("data", "add", "x", "hf:acme"), "hf:acme: `hf`"),
        (("data", "add", "x", "git+a", "--folder", "../b"), "inside of the repository"),
        (("data", "fetch", "mine"), "cannot be downloaded"),
        (("data", "fetch", "nothing"), "cannot be downloaded. Use one of: atomic"),
        (("data", "fetch", "acme", "--data", "x"), "leave --data out"),
    ],
)
def test_mistakes_about_names_are_usage_errors(arguments: tuple[str, ...], problem: str) -> None:
    write_task(Path("tasks"), PLAIN)
    Path("gta.toml").write_text(
        '[datasets.mine]\npath = "tasks"\n[datasets.acme]\npath = "a"\ngit = "b"\n'
    )
    refused = CliRunner().invoke(app, list(arguments)).exception
    assert isinstance(refused, UsageError) and problem in str(refused)
