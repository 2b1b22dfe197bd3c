import asyncio

import pytest

from gta_bench.confine.archives import ArchiveLimits
from gta_bench.content.members import ZipMember, read_zip
from gta_bench.errors import ToolError
from tests.content import samples


def test_files_are_listed_in_the_archives_order_without_folders() -> None:
    data = samples.zipped({"b/": "", "b/two.txt": "22", "a.txt": "1", "中.md": "x"})
    content = asyncio.run(read_zip(data))
    assert content.members == (
        ZipMember("b/two.txt", 2),
        ZipMember("a.txt", 1),
        ZipMember("中.md", 1),
    )
    assert content.unpacked_bytes == 4


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 nothing", "not a zip archive"),
        (samples.zipped({"a": "1" * 100})[:-30], "zip archive|broken"),
        (samples.zipped({"../a": "1"}), "points out"),
        (samples.bomb({}, 40), "times its size"),
    ],
    # An archive holds its time, and a test's name must not.
    ids=["empty", "no archive", "cut", "outside", "bomb"],
)
def test_a_bad_archive_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        asyncio.run(read_zip(data))


def test_the_limits_are_the_callers() -> None:
    data = samples.zipped({"a": "1", "b": "2"})
    with pytest.raises(ToolError, match="more than 1 members"):
        asyncio.run(read_zip(data, limits=ArchiveLimits(members=1)))
