from pathlib import Path

from gta_bench.datasets.atomic import load_atomic
from gta_bench.datasets.digest import dataset_digest, task_digests
from gta_bench.datasets.folders import load_folders
from gta_bench.datasets.selection import name_subset
from tests.authored import write_task
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


def test_examples_have_a_digest_of_their_own_that_changes_no_other(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "data")

    def digests() -> tuple[str | None, str, str]:
        loaded = load_folders(tmp_path / "data")
        found = task_digests(loaded, "q3-sales")
        named = name_subset(loaded, ["q3-sales"], "x").name
        return found.proofs, dataset_digest(loaded), named

    assert digests()[0] is None
    seen = [digests()]
    for change in ("gold/best/summary.csv", "wrong/off/wrong.toml", "cheat/thin/summary.csv"):
        (folder / change).parent.mkdir(parents=True)
        (folder / change).write_bytes(b"1")
        seen.append(digests())
    (folder / "gold/best/.hidden").write_bytes(b"1")
    assert digests() == seen[-1]
    (folder / "gold/link").symlink_to("/etc/passwd")
    seen.append(digests())
    assert len({proofs for proofs, _, _ in seen}) == 5
    assert len({rest for _, *names in seen for rest in [tuple(names)]}) == 1
