"""Everything that a system wrote is kept, under its name, and nothing else is."""

import os
from pathlib import Path

from gta_bench.confine.workspace import Quota
from gta_bench.judging.deliverables import collect_deliverables
from gta_bench.runs.artefacts import ArtefactStore


def test_every_file_is_kept_under_its_path(tmp_path: Path) -> None:
    work = tmp_path / "outputs"
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "报告.md").write_bytes(b"same")
    (work / "a.txt").write_bytes(b"same")
    (work / "empty.csv").write_bytes(b"")
    store = ArtefactStore(tmp_path / "artefacts")
    found = collect_deliverables(work, store)
    assert [(file.path, file.size) for file in found.deliverables] == [
        ("a.txt", 4),
        ("deep/er/报告.md", 4),
        ("empty.csv", 0),
    ]
    assert found.left == ()
    first, second, _ = found.deliverables
    assert first.digest == second.digest
    assert store.read(first.digest) == b"same"
    assert len([path for path in store.folder.rglob("*") if path.is_file()]) == 2


def test_links_pipes_and_what_is_too_much_are_named_and_not_kept(tmp_path: Path) -> None:
    work = tmp_path / "outputs"
    work.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (work / "a").write_bytes(b"12")
    (work / "b").write_bytes(b"12345")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "folder").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    (work / "z1").write_bytes(b"12")
    (work / "z2").write_bytes(b"12")
    quota = Quota(file_bytes=4, total_bytes=100, files=2)
    found = collect_deliverables(work, ArtefactStore(tmp_path / "artefacts"), quota=quota)
    assert [file.path for file in found.deliverables] == ["a", "z1"]
    assert [words.partition(":")[0] for words in found.left] == [
        "b",
        "folder",
        "link",
        "pipe",
        "z2",
    ]
    assert found.left[-1] == "z2: more than 2 files"


def test_a_name_that_is_no_text_is_kept_with_marks(tmp_path: Path) -> None:
    work = tmp_path / "outputs"
    work.mkdir()
    Path(os.fsdecode(os.fsencode(work) + b"/\xff.txt")).write_bytes(b"x")
    found = collect_deliverables(work, ArtefactStore(tmp_path / "artefacts"))
    assert found.deliverables[0].path == "\ufffd.txt"
