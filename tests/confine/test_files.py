"""Folders that hostile code has filled: counted and removed, whatever was made in them."""

import os
from pathlib import Path

import pytest

from gta_bench.confine import files
from tests.confine.users import USERS, run_as

SECRET = b"planted-secret"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    file = tmp_path / "outside" / "secret.txt"
    file.parent.mkdir()
    file.write_bytes(SECRET)
    return file


class TestRemoving:
    def test_a_tree_deeper_than_any_path_is_removed(self, tmp_path: Path) -> None:
        root = tmp_path / "deep"
        root.mkdir()
        folder = os.open(root, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=folder)
            deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = deeper
        os.close(folder)
        files.remove_tree(root)
        assert not root.exists()

    def test_folders_without_any_rights_are_removed(self, tmp_path: Path) -> None:
        root = tmp_path / "closed"
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "file").write_bytes(b"x")
        (root / "a" / "b").chmod(0)
        (root / "a").chmod(0)
        files.remove_tree(root)
        assert not root.exists()

    def test_links_are_removed_and_not_followed(self, tmp_path: Path, outside: Path) -> None:
        root = tmp_path / "links"
        root.mkdir()
        (root / "folder").symlink_to(outside.parent)
        (root / "file").symlink_to(outside)
        os.mkfifo(root / "pipe")
        files.remove_tree(root)
        assert outside.read_bytes() == SECRET

    def test_what_an_unprivileged_user_cannot_look_at_counts_as_too_much(self) -> None:
        code = (
            "import os, tempfile\n"
            "from pathlib import Path\n"
            "from gta_bench.confine import files\n"
            "for mode in (0o300, 0o400, 0o700):\n"
            "    root = Path(tempfile.mkdtemp())\n"
            "    (root / 'd').mkdir()\n"
            "    (root / 'd' / 'f').write_bytes(b'x')\n"
            "    (root / 'd').chmod(mode)\n"
            "    print(files.usage(root, most_bytes=1 << 20, most_files=9).bytes > 1 << 20)\n"
            "    files.remove_tree(root)\n"
        )
        done = run_as(USERS[-1], ["-c", code])
        if done is None:
            pytest.skip("no Python that an unprivileged user can start")
        assert done.stdout.split() == ["True", "True", "False"], done.stderr

    def test_counting_ends_as_soon_as_it_is_too_much(self, tmp_path: Path) -> None:
        for number in range(50):
            (tmp_path / str(number)).write_bytes(b"x" * 10)
        assert files.usage(tmp_path, most_bytes=10_000, most_files=10).files == 11
        assert files.usage(tmp_path, most_bytes=10_000, most_files=100) == (500, 50)
