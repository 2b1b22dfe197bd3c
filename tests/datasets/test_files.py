from pathlib import Path

import pytest

from gta_bench.datasets.files import file_kind, parse, read_json, sha256
from gta_bench.datasets.released import ReleasedCheckpoint
from gta_bench.errors import DatasetError


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b"\xff", r"is not UTF-8 text \(byte 0\)"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": 1, "a": 2}', "field 'a': the key occurs twice"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"1" * 5000, "is not valid JSON"),
    ],
)
def test_json_that_cannot_be_trusted_is_refused(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    file = tmp_path / "dataset.json"
    file.write_bytes(content)
    with pytest.raises(DatasetError, match=problem):
        read_json(file)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"dataset.json: cannot be read: Is a directory"):
        (tmp_path / "dataset.json").mkdir()
        read_json(tmp_path / "dataset.json")


def test_a_tree_nested_beyond_reason_is_refused() -> None:
    tree: dict[str, object] = {"id": "leaf"}
    for _ in range(2000):
        tree = {"id": "node", "sub_tasks": [tree]}
    with pytest.raises(DatasetError, match=r"task '1'"):
        parse(ReleasedCheckpoint, tree, file="end.json", task="1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"RIFF\x10\x0a\x00\x00WEBP", "webp"),
        (b"RIFF\x10\x0a\x00\x00WAVE", "wav"),
        (b"GIF89a", "gif"),
        (b"ID3\x04", "mp3"),
        (b"\x00\x00\x00\x18ftypmp42", "mp4"),
        (b"%PDF-1.7", "pdf"),
        (b"PK\x03\x04", "zip"),
        (b"hello", None),
        (b"", None),
    ],
)
def test_the_leading_bytes_say_what_a_file_is(
    tmp_path: Path, head: bytes, kind: str | None
) -> None:
    file = tmp_path / "file"
    file.write_bytes(head)
    assert file_kind(file) == kind


def test_the_digest_is_sha256(tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.touch()
    assert sha256(file).startswith("e3b0c44298fc1c14")
