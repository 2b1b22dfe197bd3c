"""Workspaces, locks and tapes on Windows, where folders have no descriptors."""

from pathlib import Path

import pytest

from tests.systems.machines import SYSTEMS, Machine

WORK = """
import os, sys
from pathlib import Path
from gta_bench.confine import files
from gta_bench.confine.workspace import Workspace
from gta_bench.errors import GtaError
from gta_bench.harnesses.collecting import keep_files, list_files
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.runs.store import append_lines, is_locked, lock_folder
from gta_bench.tape.storage import Tape

home = Path.cwd()
(home / "a.txt").write_bytes(b"one\\ntwo\\n")
space = Workspace.create(home / "task", {"inputs/a.txt": home / "a.txt"})
assert space.read("inputs\\\\a.txt") == b"one\\ntwo\\n"
assert space.write("C:\\\\x\\\\con.txt", b"1").path == "outputs/_con.txt"
assert space.write("b.txt", b"1").path == "outputs/b.txt"
assert space.write("b.txt", b"2").path == "outputs/b-2.txt"
assert space.write("b.txt", b"3", overwrite=True).path == "outputs/b.txt"
assert space.read("b.txt") == b"3"
(home / "task" / "outputs" / "link.txt").symlink_to(home / "a.txt")
(home / "task" / "outputs" / "folder.txt").mkdir()
for bad in ("outputs/link.txt", "outputs/folder.txt", "../a.txt"):
    try:
        space.read(bad)
        raise SystemExit(f"read {bad}")
    except GtaError:
        pass
assert len(space.outputs().files) == 3, space.outputs()
try:
    space.write("folder.txt", b"4", overwrite=True)
    raise SystemExit("wrote over a folder")
except GtaError as exc:
    assert "is a folder" in str(exc)

(home / "linked").symlink_to(home / "task")
try:
    with files.open_folder(home / "linked"):
        raise SystemExit("followed a link")
except OSError:
    pass
found = list_files(home / "task" / "outputs")
kept = keep_files(ArtefactStore(home / "artefacts"), found.files)
assert sorted(one.path for one in kept.deliverables) == [
    "outputs/_con.txt", "outputs/b-2.txt", "outputs/b.txt"
]
files.remove_tree(home / "task")
assert not (home / "task").exists()

with lock_folder(home / "run"):
    print("locked")
assert not is_locked(home / "run")
append_lines(home / "lines.jsonl", b"{}\\n")
append_lines(home / "lines.jsonl", b"[]\\n")
assert (home / "lines.jsonl").read_bytes() == b"{}\\n[]\\n"
Tape.record(home / "tape", dataset="atomic", origin="reference").close()
tape = Tape.open(home / "tape")
assert len(tape) == 0
tape.close()
print("done")
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_files_locks_and_tapes_work_as_on_linux(system: str, tmp_path: Path) -> None:
    machine = Machine(system, tmp_path / "home")
    (tmp_path / "work.py").write_text(WORK, encoding="utf-8")
    code, text = machine.python(str(tmp_path / "work.py"))
    assert (code, text.split()) == (0, ["locked", "done"]), text
    assert list(machine.bad_names()) == []


def test_a_lock_of_windows_keeps_other_processes_waiting(tmp_path: Path) -> None:
    machine = Machine("win32", tmp_path / "home")
    other = (
        "from pathlib import Path\nfrom gta_bench.runs.store import is_locked\n"
        "print(is_locked(Path('run')))"
    )
    both = f"""
import subprocess, sys
from pathlib import Path
from gta_bench.runs.store import lock_folder
ask = [sys.executable, "-c", {other!r}]
with lock_folder(Path("run")):
    print(subprocess.run(ask, capture_output=True, text=True).stdout.strip())
print(subprocess.run(ask, capture_output=True, text=True).stdout.strip())
"""
    assert machine.python("-c", both).text.split() == ["True", "False"]
