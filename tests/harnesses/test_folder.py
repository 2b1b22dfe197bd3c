"""Folders of finished results: every form met in practice, and nothing outside them is read."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from gta_bench.errors import DatasetError
from gta_bench.harnesses import collecting
from gta_bench.harnesses.collecting import DEEPEST, FoundFile, keep_files
from gta_bench.harnesses.delivery import Delivery, Finished
from gta_bench.harnesses.finished import FINAL_BYTES, find_task, read_folder
from gta_bench.records.steps import AnswerStep
from gta_bench.runs.artefacts import ArtefactStore
from tests.builders import write_json

TASKS = ("7", "8", "108", "a-b")
SECRET = b"not for the judge"


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def answer(delivery: Delivery) -> str:
    (step,) = delivery.trace
    assert isinstance(step, AnswerStep)
    return step.content


def names(delivery: Delivery) -> list[str]:
    return sorted(file.name for file in delivery.files)


def messages(finished: Finished) -> str:
    return "\n".join(f"{one.task} {one.file} {one.message}" for one in finished.findings)


def left_out(delivery: Delivery) -> dict[str, str]:
    return {item.name: item.reason for item in delivery.left_out}


def test_the_layout_of_the_published_builder_is_read(tmp_path: Path) -> None:
    source = {"7/final.txt": "Done.\n", "7/files/report.docx": "x", "7/files/a/b/c.csv": "1,2"}
    found = read_folder(write(tmp_path, source), TASKS)
    assert list(found.deliveries) == ["7"]
    assert answer(found.deliveries["7"]) == "Done."
    assert names(found.deliveries["7"]) == ["a/b/c.csv", "report.docx"]
    assert found.findings == ()


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("7", "7"),
        ("task7", "7"),
        ("task_7", "7"),
        ("Task-007", "7"),
        ("007", "7"),
        ("a-b", "a-b"),
        ("task_a-b", "a-b"),
        ("17", None),
        ("tasks", None),
        ("task_", None),
        ("notes7", None),
    ],
)
def test_a_folder_is_known_by_its_task(name: str, task: str | None) -> None:
    assert find_task(name, frozenset(TASKS)) == task


@pytest.mark.parametrize(
    ("files", "final", "delivered"),
    [
        ({"final.txt": "A", "r.pdf": "x", "img/p.png": "y"}, "A", ["img/p.png", "r.pdf"]),
        ({"final.md": "A", "meta.json": "{}"}, "A", []),
        ({"answer.md": "A", "outputs/r.pdf": "x"}, "A", ["r.pdf"]),
        ({"output.txt": "A"}, "A", []),
        ({"final.txt": "A", "answer.md": "a deliverable"}, "A", ["answer.md"]),
        ({"final.txt": "A", ".git/config": "x", "node_modules/a.js": "x"}, "A", []),
    ],
)
def test_flat_forms_are_read_too(
    tmp_path: Path, files: dict[str, str | bytes], final: str, delivered: list[str]
) -> None:
    found = read_folder(write(tmp_path / "task_7", files).parent, TASKS)
    assert answer(found.deliveries["7"]) == final
    assert names(found.deliveries["7"]) == delivered
    assert found.findings == ()


def test_files_without_a_text_are_delivered_and_an_empty_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "8").mkdir()
    found = read_folder(write(tmp_path, {"7/slides.pptx": "x"}), TASKS)
    assert list(found.deliveries) == ["7"]
    assert found.deliveries["7"].trace == ()
    assert "7 7 has no final text" in messages(found)
    assert "8 8 contains neither a final text nor a file" in messages(found)


def test_files_next_to_the_folder_of_files_are_reported(tmp_path: Path) -> None:
    source = {"7/final.txt": "A", "7/files/r.pdf": "x", "7/log.txt": "noise"}
    found = read_folder(write(tmp_path, source), TASKS)
    assert names(found.deliveries["7"]) == ["r.pdf"]
    assert "next to `files/`" in left_out(found.deliveries["7"])["log.txt"]


def test_other_things_in_the_folder_are_reported(tmp_path: Path) -> None:
    found = read_folder(write(tmp_path, {"7/final.txt": "A", "17/final.txt": "B", "8": "C"}), TASKS)
    assert list(found.deliveries) == ["7"]
    assert "None 17 is not the folder of a task" in messages(found)
    assert "8 8 is not the folder of a task" in messages(found)


def test_two_folders_of_one_task_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"7/final.txt": "A", "task_7/final.txt": "B"})
    with pytest.raises(DatasetError, match="'7' and 'task_7' are the same task; remove one"):
        read_folder(tmp_path, TASKS)


def test_a_folder_without_any_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no folder with the name of a task of the dataset"):
        read_folder(write(tmp_path, {"results/final.txt": "A"}), TASKS)


@pytest.mark.parametrize(
    ("data", "text", "said"),
    [
        ("Größe\n".encode("utf-16"), "Größe", "read as utf-16"),
        ("Café".encode("cp1252"), "Café", "read as cp1252"),
        ("\ufeffDone".encode(), "Done", ""),
        (b"\x00\x01\x02", "", "It counts as empty"),
        (b"x" * (FINAL_BYTES + 5), "x" * FINAL_BYTES, "the rest is cut off"),
        (("x" + "é" * FINAL_BYTES).encode(), "x" + "é" * (FINAL_BYTES // 2 - 1), "is cut off"),
    ],
)
def test_final_texts_in_any_encoding_and_length(
    tmp_path: Path, data: bytes, text: str, said: str
) -> None:
    found = read_folder(write(tmp_path, {"7/final.txt": data}), TASKS)
    assert answer(found.deliveries["7"]) == text
    assert said in messages(found)
    assert bool(said) == bool(found.findings)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.txt": SECRET, "8/final.txt": SECRET})
    source = write(tmp_path / "source", {"7/files/real.txt": "x"})
    (source / "7" / "final.txt").symlink_to(outside / "secret.txt")
    (source / "7" / "files" / "secret.txt").symlink_to(outside / "secret.txt")
    (source / "7" / "files" / "folder").symlink_to(outside)
    (source / "8").symlink_to(outside / "8")
    found = read_folder(source, TASKS)
    assert list(found.deliveries) == ["7"]
    assert found.deliveries["7"].trace == ()
    assert names(found.deliveries["7"]) == ["real.txt"]
    reason = "is a link, and links are not followed"
    assert left_out(found.deliveries["7"]) == {"secret.txt": reason, "folder": reason}
    assert "8 8 is not the folder of a task of the dataset; links are not followed" in messages(
        found
    )
    assert "7/final.txt" in messages(found)


def test_a_linked_folder_of_files_is_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.txt": SECRET})
    source = write(tmp_path / "source", {"7/final.txt": "A"})
    (source / "7" / "files").symlink_to(outside)
    delivery = read_folder(source, TASKS).deliveries["7"]
    assert delivery.files == ()
    assert "files" in left_out(delivery)


def test_pipes_sockets_and_odd_names_are_left_out(tmp_path: Path) -> None:
    files = write(tmp_path, {"7/final.txt": "A", "7/files/ok.txt": "x"}) / "7" / "files"
    os.mkfifo(files / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(files / "socket"))
    (files / "back\\slash.txt").write_text("x", encoding="utf-8")
    (files / os.fsdecode(b"bad\xff.txt")).write_text("x", encoding="utf-8")
    delivery = read_folder(tmp_path, TASKS).deliveries["7"]
    assert names(delivery) == ["ok.txt"]
    reasons = left_out(delivery)
    assert reasons["pipe"] == reasons["socket"] == "is not a regular file"
    assert "not a usable file name" in reasons["back\\slash.txt"]
    assert len(reasons) == 4


def test_folders_deeper_than_anyone_delivers_are_left_out(tmp_path: Path) -> None:
    deep = "/".join(["d"] * (DEEPEST + 3))
    write(tmp_path, {"7/final.txt": "A", f"7/files/{deep}/x.txt": "x"})
    delivery = read_folder(tmp_path, TASKS).deliveries["7"]
    assert delivery.files == ()
    assert [reason for reason in left_out(delivery).values()] == ["is more than 32 folders deep"]


def test_a_folder_of_10_000_files_is_read_to_the_quota(tmp_path: Path) -> None:
    files = tmp_path / "7" / "files"
    (files / "cache").mkdir(parents=True)
    (files / "zz_report.txt").write_text("the work", encoding="utf-8")
    for number in range(10_000):
        (files / "cache" / f"{number:05}.txt").touch()
    delivery = read_folder(tmp_path, TASKS).deliveries["7"]
    assert len(delivery.files) == 10_001
    kept = keep_files(ArtefactStore(tmp_path / "kept"), delivery.files)
    assert len(kept.deliverables) == 200
    assert kept.deliverables[-1].path == "outputs/zz_report.txt"
    assert len(kept.left_out) == 9_801
    assert {item.reason for item in kept.left_out} == {"is one file too many"}


def test_a_folder_without_end_is_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "MOST_ENTRIES", 5)
    write(tmp_path, {"7/final.txt": "A", **{f"7/files/{number}.txt": "x" for number in range(9)}})
    delivery = read_folder(tmp_path, TASKS).deliveries["7"]
    assert len(delivery.files) == 5
    assert left_out(delivery) == {
        "…": "more than 5 entries; the others were not read",
    }


def test_files_beyond_the_quota_are_left_out_without_being_read(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    with (files / "huge.bin").open("wb") as stream:
        stream.truncate(1 << 40)
    (files / "small.txt").write_text("x", encoding="utf-8")
    found = [FoundFile(files, (name,), name) for name in ("huge.bin", "small.txt", "gone.txt")]
    kept = keep_files(ArtefactStore(tmp_path / "kept"), found)
    assert [file.path for file in kept.deliverables] == ["outputs/small.txt"]
    assert [tuple(item) for item in kept.left_out] == [
        ("huge.bin", "is larger than the task's quota allows"),
        ("gone.txt", "is missing"),
    ]


def test_names_that_are_one_text_get_numbers(tmp_path: Path) -> None:
    write(tmp_path, {"7/files/caf\u00e9.txt": "1", "7/files/cafe\u0301.txt": "2"})
    delivery = read_folder(tmp_path, TASKS).deliveries["7"]
    kept = keep_files(ArtefactStore(tmp_path / "kept"), delivery.files)
    assert [file.path for file in kept.deliverables] == [
        "outputs/caf\u00e9-2.txt",
        "outputs/caf\u00e9.txt",
    ]


META = {
    "started": "2026-11-15T09:00:00Z",
    "finished": "2026-11-15T09:02:30+00:00",
    "cost_usd": 0.4,
    "model": "some/model",
    "harness": "Manus",
    "harness_version": "1.6",
    "tokens": {"input": 1000, "output": 50},
}


def test_meta_is_read_for_a_task_and_for_all(tmp_path: Path) -> None:
    write(tmp_path, {"7/final.txt": "A", "8/final.txt": "B"})
    write_json(tmp_path / "7" / "meta.json", META)
    write_json(tmp_path / "meta.json", {"harness": "Manus", "model": "other/model"})
    found = read_folder(tmp_path, TASKS)
    meta = found.deliveries["7"].meta
    assert (meta.duration, meta.cost_usd, meta.model) == (150.0, 0.4, "some/model")
    assert found.deliveries["8"].meta.duration is None
    assert (found.stated("model"), found.stated("harness_version")) == ("other/model", "1.6")
    (note,) = found.list_disagreements()
    assert note == "tasks have different values of `model`: other/model, some/model."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "7/meta.json, task '7': Invalid JSON"),
        ("[]", "7/meta.json, task '7': Input should be an object"),
        ('{"cost_usd": -1}', "field 'cost_usd': Input should be greater than or equal to 0"),
        ('{"started": "2026-11-15T09:00:00"}', "field 'started': Input should have timezone info"),
        ('{"tokens": {"in": 1}}', "field 'tokens.in': Extra inputs are not permitted"),
    ],
)
def test_a_broken_meta_is_a_named_error(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, {"7/final.txt": "A", "7/meta.json": text})
    with pytest.raises(DatasetError) as caught:
        read_folder(tmp_path, TASKS)
    assert said in str(caught.value)


def test_unknown_keys_are_reported(tmp_path: Path) -> None:
    write(tmp_path, {"7/final.txt": "A", "7/meta.json": '{"cost": 3, "seconds": 2}'})
    found = read_folder(tmp_path, TASKS)
    assert found.deliveries["7"].meta.duration == 2
    assert (
        "has unknown keys, which are ignored: cost (known: started, finished, seconds"
        in messages(found)
    )
