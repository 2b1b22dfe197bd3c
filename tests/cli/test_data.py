import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gta_bench.cli import app
from gta_bench.runs.directory import read_manifest
from tests.builders import PNG, atomic_task, write_atomic, write_workflow
from tests.datasets.test_fetch import ARCHIVE, workflow_files, zipped
from tests.file_server import FileServer, serving


def gta(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_stats_of_gta_atomic_are_the_published_ones(atomic_dir: Path) -> None:
    result = gta("data", "stats", "atomic", "--data", atomic_dir, "--json")
    stats = json.loads(result.stdout)
    assert result.exit_code == 0
    assert stats["tasks"] == 229
    assert stats["tools_per_task"] == {"1": 17, "2": 147, "3": 50, "4": 15}
    assert (stats["tool_calls"], stats["tool_messages"], stats["answers"]) == (557, 555, 213)
    assert stats["gt_answer"] == {"dict": 156, "list": 16, "null": 57}
    assert stats["calls_per_tool"]["OCR"] == 131


def test_stats_of_gta_workflow_are_the_known_ones(workflow_dir: Path) -> None:
    stats = json.loads(gta("data", "stats", "workflow", "--data", workflow_dir, "--json").stdout)
    assert (stats["tasks"], stats["leaves"], stats["tools"]) == (20, 229, 37)


def test_stats_are_a_table_for_people(tmp_path: Path) -> None:
    result = gta("data", "stats", "atomic", "--data", write_atomic(tmp_path))
    assert "tool calls      1\n" in result.stdout
    assert "gt answer       dict: 1\n" in result.stdout


def test_verify_lists_findings_by_severity_and_exits_1_when_a_task_is_unusable(
    tmp_path: Path,
) -> None:
    root = write_atomic(tmp_path, {"3": atomic_task(files=[{"path": "image/gone.jpg"}])})
    result = gta("data", "verify", "atomic", "--data", root)
    assert result.exit_code == 1
    assert result.stdout.startswith("error attachment-missing (1)\n  task 3, files.0: image/gone")
    assert "note file-unused (1)\n  image/menu.jpg: no task uses this file." in result.stdout
    assert "findings: 1 error, 1 warning," in result.stderr


def test_verify_gives_every_finding_as_json(tmp_path: Path) -> None:
    root = write_atomic(tmp_path)
    (root / "image" / "menu.jpg").write_bytes(PNG)
    result = gta("data", "verify", "atomic", "--data", root, "--json")
    by_check = {finding["check"]: finding for finding in json.loads(result.stdout)}
    assert result.exit_code == 0
    assert by_check["bytes-disagree"]["task"] == "0"
    assert by_check["bytes-disagree"]["severity"] == "warning"


def test_verify_of_a_small_workflow_dataset_notes_that_it_is_incomplete(tmp_path: Path) -> None:
    result = gta("data", "verify", "workflow", "--data", write_workflow(tmp_path))
    assert result.exit_code == 0
    assert "has 1 task; the release has 132." in result.stdout


@pytest.fixture
def served(tmp_path: Path, loopback: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.chdir(tmp_path)
    with serving() as server:
        server.files[ARCHIVE] = zipped(workflow_files(tmp_path / "source"))
        Path("gta.toml").write_text(f'[data]\ngithub = "{server.url}"\n', encoding="utf-8")
        yield server


def test_fetch_says_what_came_and_what_is_not_pinned(served: FileServer) -> None:
    result = gta("data", "fetch", "workflow")
    assert result.exit_code == 0, result.output
    assert "3 files in data/gta_workflow." in result.stderr
    assert "published digests: nothing. Not pinned: 3 files." in result.stderr


def test_a_second_fetch_says_that_nothing_was_to_be_done(served: FileServer) -> None:
    gta("data", "fetch", "workflow")
    result = gta("data", "fetch", "workflow")
    assert "is already there and unchanged (3 files)." in result.stderr
    assert len(served.requests) == 1


def test_fetch_puts_the_dataset_where_it_is_told(served: FileServer, tmp_path: Path) -> None:
    result = gta("data", "fetch", "workflow", "--data", tmp_path / "here")
    assert result.exit_code == 0
    assert (tmp_path / "here" / "end.json").is_file()


def test_a_subset_is_named_and_its_ids_choose_the_tasks_of_a_run(tmp_path: Path) -> None:
    root = write_atomic(tmp_path, {name: atomic_task() for name in "abcdef"})
    place = ("atomic", "--data", root, "--seed", "3")
    result = gta("data", "subset", *place, "--size", "3")
    assert result.exit_code == 0, result.output
    ids = result.stdout.strip()
    assert len(ids.split(",")) == 3
    found = json.loads(gta("data", "subset", *place, "--size", "3", "--json").stdout)
    assert found["tasks"] == ids.split(",")
    assert found["name"].startswith("atomic-3-seed3-")
    assert result.stderr == f"{found['name']}: 3 of 6 tasks.\n"
    options = ("--mode", "step", "--agent", "silent", "--similarity", "exact-or-half")
    run = ("run", "atomic", *options, "--data", root, "--out", tmp_path / "run")
    gta(*run, "--tasks", ids)
    assert read_manifest(tmp_path / "run").spec.tasks == tuple(found["tasks"])
    larger = gta("data", "subset", *place, "--size", "4").stdout.strip().split(",")
    assert {*larger} > {*found["tasks"]}
    refused = gta("data", "subset", *place, "--size", "7")
    assert "the dataset has 6 tasks" in str(refused.exception)


def test_a_subset_of_workflow_tasks(tmp_path: Path) -> None:
    root = write_workflow(tmp_path)
    assert gta("data", "subset", "workflow", "--data", root, "--size", "1").stdout == "0\n"
