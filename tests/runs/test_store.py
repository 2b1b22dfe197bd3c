"""A run's files in a store, here fsspec's own in memory; `tests/slow/test_stores.py` has S3."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import (  # type: ignore[import-untyped]
    MemoryFileSystem,
)

from gta_bench.errors import EnvironmentProblem, RunError, StoreError, UsageError
from gta_bench.runs.artefacts import ArtefactStore
from gta_bench.runs.store import (
    PARTS,
    RemotePath,
    append,
    explain_store_errors,
    join_parts,
    parts_of,
    store_path,
    write_bytes_atomically,
)
from gta_bench.runs.verdicts import VERDICTS, append_verdicts, open_whole_verdicts, read_verdicts
from gta_bench.tape.storage import TAPE, Tape, tape_digest
from tests.runs.test_verdicts import row
from tests.tape.builders import line


@pytest.fixture
def place() -> Iterator[RemotePath]:
    found = store_path("memory://bucket/runs/one/")
    assert isinstance(found, RemotePath)
    yield found
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def test_a_text_is_a_folder_or_an_address(tmp_path: Path) -> None:
    assert store_path("runs/x") == Path("runs/x")
    assert store_path(f"file://{tmp_path}") == tmp_path
    assert str(store_path("memory://b/x/")) == "memory://b/x"
    with pytest.raises(UsageError, match=r"nowhere://x is neither a folder .* Protocol not known"):
        store_path("nowhere://x")
    with pytest.raises(EnvironmentProblem, match="needs a package that is not installed"):
        store_path("gs://bucket/x")


def test_files_of_a_store_are_used_as_files_of_a_folder(place: RemotePath) -> None:
    file = place / "a" / "b.json"
    assert not place.exists() and list(place.iterdir()) == [] and list(place.glob("*")) == []
    place.mkdir(parents=True, exist_ok=True)
    file.write_text("é")
    assert file.read_bytes() == "é".encode()
    assert (file.name, file.stem, file.parent) == ("b.json", "b", place / "a")
    assert file.with_name("c") == place / "a" / "c"
    assert place.exists() and place.is_dir() and file.is_file() and not place.is_file()
    assert list(place.iterdir()) == [place / "a"]
    assert list(place.glob("*/*.json")) == [file] and list(place.glob("*.json")) == []
    assert repr(file) == "RemotePath('memory://bucket/runs/one/a/b.json')"
    assert file.resolve().as_uri() == str(file)
    assert len({file, place / "a" / "b.json"}) == 1
    file.unlink()
    file.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        file.read_bytes()


def test_what_is_written_whole_replaces_the_older_one(place: RemotePath, tmp_path: Path) -> None:
    for file in (place / "x" / "run.json", tmp_path / "x" / "run.json"):
        write_bytes_atomically(file, b"one")
        write_bytes_atomically(file, b"two")
        assert file.read_bytes() == b"two"
        assert [found.name for found in file.parent.iterdir()] == ["run.json"]


def test_a_write_that_fails_leaves_no_part(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        write_bytes_atomically(tmp_path / "taken", b"x")
    assert [found.name for found in tmp_path.iterdir()] == ["taken"]


def test_parts_of_a_file_are_read_in_their_order(place: RemotePath) -> None:
    file = place / "lines"
    for number in range(5):
        append(file, f"{number}\n".encode())
    with join_parts(file) as whole:
        assert whole.read_bytes() == b"0\n1\n2\n3\n4\n"
    assert not whole.exists()
    file.write_bytes(b"before\nhalf a li")
    with join_parts(file) as whole:
        assert whole.read_bytes() == b"before\n0\n1\n2\n3\n4\n", "a half line is no line"


def test_artefacts_lie_in_a_store_by_their_content(place: RemotePath) -> None:
    store = ArtefactStore(place / "artefacts")
    digest = store.keep(b"page")
    assert store.keep(b"page") == digest and store.read(digest) == b"page"
    with pytest.raises(RunError, match="has no file"):
        store.read("0" * 64)
    store.path(digest).write_bytes(b"other")
    with pytest.raises(RunError, match="was changed"):
        store.read(digest)


def test_verdicts_of_a_store_are_those_of_a_folder(place: RemotePath, tmp_path: Path) -> None:
    rows = [row("a"), row("b", None), row("a", 3), row("b", 4), row("a", None)]
    assert read_verdicts(place) == {}
    for run in (place, tmp_path):
        for one in rows:
            append_verdicts(run, [one])
        append_verdicts(run, [])
    assert read_verdicts(place) == read_verdicts(tmp_path)
    with open_whole_verdicts(place) as file:
        assert file.read_bytes() == (tmp_path / VERDICTS).read_bytes()


def test_a_run_that_was_copied_from_a_store_goes_on_in_a_folder(
    place: RemotePath, tmp_path: Path
) -> None:
    append_verdicts(place, [row("a", 3)])
    append_verdicts(place, [row("b", 4)])
    parts = tmp_path / f"{VERDICTS}{PARTS}"
    parts.mkdir()
    for part in parts_of(place / VERDICTS).iterdir():
        (parts / part.name).write_bytes(part.read_bytes())
    assert read_verdicts(tmp_path) == read_verdicts(place)
    append_verdicts(tmp_path, [row("a", 9)])
    assert not parts.exists()
    assert [one.verdict.value for one in read_verdicts(tmp_path).values()] == [9, 4]  # type: ignore[union-attr]


def test_a_tape_of_a_store_is_recorded_continued_and_replayed(
    place: RemotePath, tmp_path: Path
) -> None:
    for folder in (place, tmp_path / "tape"):
        for task in ("1", "2"):
            tape = Tape.record(folder, dataset="atomic", origin="live")
            tape.keep(line(task, "seen", note=task))
            tape.close()
    assert tape_digest(place) == tape_digest(tmp_path / "tape")
    tape = Tape.open(place)
    assert len(tape) == 2
    assert tape.find_exact(line("2", "seen", note="2").call, epoch=1, number=1) is not None
    tape.close()
    assert len(list(parts_of(place / TAPE).iterdir())) == 3
    with pytest.raises(RunError, match="is not a tape"):
        Tape.open(place / "elsewhere")


@pytest.mark.parametrize(
    ("failure", "writing", "said"),
    [
        (
            TimeoutError("Slow"),
            False,
            r"Cannot reach .*: Slow\. .* is safe; run the same command",
        ),
        (FileNotFoundError("No bucket."), True, r"Cannot write to .*: No bucket\. Check that"),
        (StoreError("first"), False, "^first$"),
    ],
)
def test_a_store_that_fails_is_told_in_one_line(
    place: RemotePath, failure: Exception, writing: bool, said: str
) -> None:
    with pytest.raises(StoreError, match=said), explain_store_errors(place, writing=writing):
        raise failure


@pytest.mark.parametrize("failure", [TimeoutError(), FileNotFoundError()])
def test_failures_of_a_folder_stay_what_they_are(tmp_path: Path, failure: OSError) -> None:
    with pytest.raises(type(failure)), explain_store_errors(tmp_path, writing=True):
        raise failure


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    opened = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_bytes_atomically(pipe, b"said")
    assert os.read(opened, 10) == b"said"
    os.close(opened)
    assert pipe.is_fifo()
