from pathlib import Path

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest
from tests.builders import PNG, write_atomic


def test_the_digest_does_not_depend_on_where_the_dataset_lies(tmp_path: Path) -> None:
    first = load_atomic(write_atomic(tmp_path / "a"))
    second = load_atomic(write_atomic(tmp_path / "b"))
    assert dataset_digest(first) == dataset_digest(second)


def test_the_digest_changes_with_any_file_that_a_task_needs(tmp_path: Path) -> None:
    root = write_atomic(tmp_path)
    digests = {dataset_digest(load_atomic(root))}
    (root / "image" / "menu.jpg").write_bytes(PNG)
    digests.add(dataset_digest(load_atomic(root)))
    (root / "image" / "menu.jpg").unlink()
    digests.add(dataset_digest(load_atomic(root)))
    (root / "toolmeta.json").write_text("[]", encoding="utf-8")
    digests.add(dataset_digest(load_atomic(root)))
    assert len(digests) == 4
