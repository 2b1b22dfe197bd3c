import io
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench.datasets.fetch import unpack
from gta_bench.errors import FetchError

PARTS = st.sampled_from(["a", "b", "..", ".", "", "C:", "\\", "x.txt", "con", "~", "a\\..\\b"])
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join).filter(bool)


def archive(folder: Path, members: dict[str, bytes]) -> Path:
    file = folder / "a.zip"
    with zipfile.ZipFile(file, "w") as opened:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.filename = name  # as it stands, not as Python would clean it
            opened.writestr(info, content)
    return file


def below(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file()}


@given(st.lists(NAMES, min_size=1, max_size=3, unique=True))
def test_whatever_the_names_nothing_is_written_outside_the_folder(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    root = tmp_path_factory.mktemp("unpack")
    made = archive(root, dict.fromkeys(names, b"x"))
    target = root / "deep" / "target"
    try:
        unpack(made, target)
    except FetchError as error:
        assert str(error).startswith("a.zip: ")
    assert {file for file in below(root) if target not in file.parents} == {made}


def test_members_keep_their_folders_and_content(tmp_path: Path) -> None:
    unpack(archive(tmp_path, {"a/b.txt": b"1", "c.txt": b"2"}), tmp_path / "out")
    assert (tmp_path / "out" / "a" / "b.txt").read_bytes() == b"1"
    assert (tmp_path / "out" / "c.txt").read_bytes() == b"2"


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_only_plain_files_are_unpacked(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo("odd")
    info.external_attr = (kind | 0o644) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        opened.writestr(info, "target")
    with pytest.raises(FetchError, match="'odd' is not a plain file"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_member_whose_content_is_damaged_is_refused(tmp_path: Path) -> None:
    made = archive(tmp_path, {"a.txt": b"hello world"})
    made.write_bytes(made.read_bytes().replace(b"hello", b"jello"))
    with pytest.raises(FetchError, match="cannot be unpacked: Bad CRC-32"):
        unpack(made, tmp_path / "out")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    made = archive(tmp_path, {"a.txt": b"hello"})
    content = bytearray(made.read_bytes())
    content[6] |= 1  # the flag in the local header
    content[content.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    made.write_bytes(bytes(content))
    with pytest.raises(FetchError, match="cannot be unpacked"):
        unpack(made, tmp_path / "out")


def test_a_tight_but_small_member_is_no_bomb(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("zeros", bytes(1 << 20))
    (tmp_path / "a.zip").write_bytes(buffer.getvalue())
    unpack(tmp_path / "a.zip", tmp_path / "out")
    assert (tmp_path / "out" / "zeros").stat().st_size == 1 << 20
