"""The digest of a harness's own files: what is in it, and that an edit is another run."""

import sys
from pathlib import Path
from typing import Any

import pytest

from gta_bench.errors import RunError
from gta_bench.harnesses.choice import Harness, HarnessKind
from gta_bench.harnesses.exposure import hash_harness_files
from gta_bench.records.run import System
from gta_bench.runs.directory import open_run
from tests.builders import manifest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `gta` runs."""
    folder = tmp_path / "mine"
    write(folder, "agent.py", "print(1)")
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def digest(
    target: str = "python3 agent.py", kind: HarnessKind = "command", **changes: Any
) -> str | None:
    return hash_harness_files(Harness(kind=kind, target=target, **changes))


def test_an_edited_file_of_the_command_has_another_digest(folder: Path) -> None:
    before = digest()
    assert before is not None and before == digest()
    write(folder, "agent.py", "print(2)")
    assert digest() != before


def test_files_elsewhere_are_installed(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/agent.py", "print(1)")
    assert digest(f"python3 {tmp_path}/elsewhere/agent.py") is None
    assert digest("sh -c true") is None
    assert digest("codex", "named") is None


def test_a_readable_folder_counts_with_all_its_files(folder: Path) -> None:
    write(folder, "lib/tools/a.py", "a = 1")
    before = digest(readable=[folder / "lib"])
    assert before != digest()
    write(folder, "lib/tools/a.py", "a = 2")
    assert digest(readable=[folder / "lib"]) != before


@pytest.mark.parametrize(
    "name",
    ["lib/.cache/x", "lib/__pycache__/a.pyc", "lib/node_modules/b.js", "lib/runs/a/run.json"],
)
def test_what_changes_by_itself_does_not_count(folder: Path, name: str) -> None:
    write(folder, "lib/a.py", "a = 1")
    before = digest(readable=[folder / "lib"])
    write(folder, name, "anything")
    write(folder, str(Path(name).parent / "logs" / "more"), "anything")
    assert digest(readable=[folder / "lib"]) == before


def test_a_python_agent_counts_with_its_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    write(folder, "digested_agent/__init__.py", "")
    write(folder, "digested_agent/main.py", "def agent(task): ...")
    before = digest("digested_agent.main:agent", "bridged")
    write(folder, "digested_agent/helper.py", "x = 1")
    assert before not in (None, digest("digested_agent.main:agent", "bridged"))
    sys.modules.pop("digested_agent")
    assert digest("json:dumps", "bridged") is None


def test_an_edited_harness_is_another_run_and_an_unrecorded_one_is_not(tmp_path: Path) -> None:
    def planned(found: str | None) -> Any:
        system = System(model="m", agent="harness", harness="x", harness_digest=found)
        return manifest(system=system)

    run = tmp_path / "run"
    open_run(run, planned("aaa"))
    with pytest.raises(RunError, match="harness_digest"):
        open_run(run, planned("bbb"))
    old = tmp_path / "old"
    open_run(old, planned(None))
    open_run(old, planned("bbb"))
