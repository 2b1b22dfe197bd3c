from pathlib import Path

import pytest

from gta_bench.datasets.canary import mark_dataset, read_canaries
from gta_bench.datasets.convert import convert
from gta_bench.datasets.digest import dataset_digest
from gta_bench.datasets.folders import load_folders
from gta_bench.datasets.workflow import load_workflow
from gta_bench.errors import DatasetError
from tests.authored import write_task

PLAIN = 'format = 1\nid = "q3-sales"\n[[leaf]]\nid = "a"\nsays = "x"'


def test_every_file_that_is_published_gets_the_line_and_no_digest_changes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_task(tmp_path, PLAIN, name=name)
    (tmp_path / "README.md").write_text("# Tasks\n")
    assert read_canaries(tmp_path) == ()
    before = dataset_digest(load_folders(tmp_path))
    canary, written = mark_dataset(tmp_path)
    assert (written, read_canaries(tmp_path)) == (3, (canary,))
    assert dataset_digest(load_folders(tmp_path)) == before
    assert (tmp_path / "README.md").read_text().startswith(f"# Tasks\n\ngta-bench canary {canary}:")
    write_task(tmp_path, PLAIN, name="three")
    assert mark_dataset(tmp_path) == (canary, 1)
    assert mark_dataset(tmp_path) == (canary, 0)


def test_a_converted_dataset_keeps_its_canary(tmp_path: Path) -> None:
    write_task(tmp_path / "folders", PLAIN)
    canary, _ = mark_dataset(tmp_path / "folders")
    convert(load_workflow(tmp_path / "folders"), tmp_path / "released")
    assert [*(tmp_path / "released").glob("*.md")] and read_canaries(tmp_path / "released") == (
        canary,
    )
    convert(load_workflow(tmp_path / "released"), tmp_path / "again")
    assert canary in (tmp_path / "again/q3-sales/task.toml").read_text()


def test_links_and_other_bytes_are_read_over_but_never_written(tmp_path: Path) -> None:
    write_task(tmp_path, PLAIN)
    (tmp_path / "README.md").write_bytes(b"\xff")
    assert read_canaries(tmp_path) == ()
    with pytest.raises(DatasetError, match="is not UTF-8 text"):
        mark_dataset(tmp_path)
    (tmp_path / "README.md").unlink()
    (tmp_path / "README.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(DatasetError, match="is a link"):
        mark_dataset(tmp_path)
