import asyncio

import pytest

from gta_bench.content.members import read_zip
from gta_bench.errors import ToolError
from tests.content import samples


def test_files_are_listed_in_the_archives_order_without_folders() -> None:
    data = samples.zipped({"b/": "", "b/two.txt": "22", "a.txt": "1", "中.md": "x"})
    content = asyncio.run(read_zip(data))
    assert content.names == ("b/two.txt", "a.txt", "中.md")
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
    # An archive contains a time stamp, which must not become part of a test's name.
    ids=["empty", "no archive", "cut", "outside", "bomb"],
)
def test_a_bad_archive_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        asyncio.run(read_zip(data))
