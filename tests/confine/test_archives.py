"""Archives: what is too large, too deep or dishonest is refused before anybody unpacks it."""

import io
import stat
import struct
import zipfile
import zlib

import pytest

from gta_bench.confine.archives import ArchiveLimits, ArchiveSummary, check_archive
from gta_bench.errors import ToolError

SMALL = ArchiveLimits(members=50, total_bytes=2 << 20, ratio=100.0, ratio_from=1 << 20, depth=1)


def packed(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def check(data: bytes, limits: ArchiveLimits = SMALL) -> ArchiveSummary:
    return check_archive(io.BytesIO(data), limits=limits)


def refuse(data: bytes, words: str, limits: ArchiveLimits = SMALL) -> None:
    with pytest.raises(ToolError, match=words):
        check(data, limits)


def random_bytes(size: int) -> bytes:
    import random

    return random.Random(size).randbytes(size)


class TestHonestArchives:
    def test_an_ordinary_archive_is_counted(self) -> None:
        data = packed({"word/document.xml": b"<a/>" * 100, "word/media/a.png": random_bytes(999)})
        assert check(data) == ArchiveSummary(members=2, unpacked_bytes=1399, depth=0)

    def test_a_stored_archive_is_counted(self) -> None:
        assert check(packed({"a": b"x" * 10}, zipfile.ZIP_STORED)).unpacked_bytes == 10

    def test_an_empty_archive_is_counted(self) -> None:
        assert check(packed({})) == ArchiveSummary(0, 0, 0)

    def test_an_archive_within_an_archive_is_counted_too(self) -> None:
        inner = packed({"sheet.xml": b"x" * 100})
        summary = check(packed({"embeddings/book.xlsx": inner}))
        assert summary == ArchiveSummary(2, 100 + len(inner), 1)

    def test_folders_are_members(self) -> None:
        assert check(packed({"folder/": b"", "folder/a": b"1"})).members == 2

    def test_an_archive_written_as_a_stream_is_counted(self) -> None:
        class Pipe(io.BytesIO):
            def seekable(self) -> bool:
                return False

        stream = Pipe()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", b"x" * 5000)
        assert check(stream.getvalue()).unpacked_bytes == 5000

    def test_an_archive_in_the_64_bit_form_is_counted(self) -> None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive, archive.open("a", "w", force_zip64=True) as f:
            f.write(b"x" * 10)
        assert check(stream.getvalue()).unpacked_bytes == 10

    def test_a_small_archive_may_pack_very_well(self) -> None:
        assert check(packed({"a": bytes(900_000)})).unpacked_bytes == 900_000


class TestBombs:
    def test_one_enormous_member_is_refused(self) -> None:
        refuse(packed({"a": bytes(3 << 20)}), "times its size|more than 2097152 bytes")

    def test_many_members_that_are_enormous_together_are_refused(self) -> None:
        data = packed({str(i): random_bytes(1 << 18) for i in range(9)})
        refuse(data, "more than 2097152 bytes")

    def test_a_ratio_beyond_all_measure_is_refused(self) -> None:
        refuse(packed({"a": bytes(1_500_000)}), "100 times its size")

    def test_too_many_members_are_refused(self) -> None:
        refuse(packed({str(i): b"" for i in range(51)}), "more than 50 members")

    def test_a_directory_too_large_to_read_is_refused_unread(self) -> None:
        data = packed({f"{i}-{'n' * 200}": b"" for i in range(400)})
        refuse(data, "more than 50 members")

    def test_a_bomb_within_an_archive_is_refused(self) -> None:
        inner = packed({"a": bytes(3 << 20)})
        refuse(packed({"inner.zip": inner}), "times its size|bytes")

    def test_archives_nested_too_deep_are_refused(self) -> None:
        data = b"x"
        for level in range(4):
            data = packed({f"{level}.zip": data})
        refuse(data, "2 deep; 1 are allowed")

    def test_members_that_share_their_bytes_are_refused(self) -> None:
        data = bytearray(packed({"a": random_bytes(4000), "b": b"x"}))
        second = data.rfind(b"PK\x01\x02")
        # The second entry now claims the first one's place and size.
        struct.pack_into("<LL", data, second + 20, 4005, 4000)
        struct.pack_into("<L", data, second + 42, 0)
        refuse(bytes(data), "overlap")

    def test_a_size_that_lies_is_found_by_unpacking(self) -> None:
        data = bytearray(packed({"a": bytes(3 << 20)}))
        entry = data.rfind(b"PK\x01\x02")
        struct.pack_into("<L", data, entry + 24, 10)  # "unpacks to ten bytes"
        struct.pack_into("<L", data, 22, 10)
        refuse(bytes(data), "times its size|bytes")

    def test_a_real_office_bomb_is_refused_with_the_default_limits(self) -> None:
        data = packed({"word/document.xml": bytes(40 << 20)})
        refuse(data, "200 times its size", ArchiveLimits())


class TestDishonestMembers:
    @pytest.mark.parametrize(
        "name", ["../x", "/etc/passwd", "a/../../x", "..\\x", "\\\\host\\x", "C:x"]
    )
    def test_a_name_that_points_outside_is_refused(self, name: str) -> None:
        refuse(packed({name: b"x"}), "points outside the archive")

    def test_a_link_is_refused(self) -> None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            info = zipfile.ZipInfo("link")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
        refuse(stream.getvalue(), "is a link")

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_a_name_that_stands_twice_is_refused(self) -> None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("a", "1")
            archive.writestr("a", "2")
        refuse(stream.getvalue(), "twice")

    def test_an_encrypted_member_is_refused(self) -> None:
        data = bytearray(packed({"a": b"x"}))
        data[data.rfind(b"PK\x01\x02") + 8] |= 1
        refuse(bytes(data), "encrypted")

    @pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_an_uncommon_packing_is_refused(self, compression: int) -> None:
        refuse(packed({"a": b"x" * 100}, compression), "unsupported compression method")

    def test_two_headers_that_disagree_are_refused(self) -> None:
        data = bytearray(packed({"a": b"x" * 100}))
        struct.pack_into("<H", data, 8, 0)  # the local header says: not packed
        refuse(bytes(data), "contradicts itself")

    def test_a_header_that_is_not_there_is_refused(self) -> None:
        data = bytearray(packed({"a": b"x" * 100}))
        data[0:4] = b"XXXX"
        refuse(bytes(data), "broken")

    def test_rubbish_in_place_of_packed_data_is_refused(self) -> None:
        data = bytearray(packed({"a": b"hello" * 100}))
        data[31:36] = b"\xff" * 5
        refuse(bytes(data), "broken")


class TestNoArchives:
    @pytest.mark.parametrize(
        "data", [b"", b"PK", b"<html>", b"PK\x05\x06", zlib.compress(b"x"), random_bytes(5000)]
    )
    def test_what_is_no_archive_is_refused(self, data: bytes) -> None:
        refuse(data, "not a zip archive")

    @pytest.mark.parametrize("cut", [30, 60, 100])
    def test_half_an_archive_is_refused(self, cut: int) -> None:
        with pytest.raises(ToolError):
            check(packed({"a": random_bytes(500), "b": b"x"})[:-cut])

    def test_no_damage_to_an_archive_escapes_as_another_error(self) -> None:
        whole = packed({"a/b.xml": b"hello" * 50, "c.zip": packed({"d": b"x"})})
        for place in range(len(whole)):
            damaged = bytearray(whole)
            damaged[place] ^= 0xFF
            try:
                check(bytes(damaged))
            except ToolError:
                continue
