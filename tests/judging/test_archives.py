"""Files within files are shown like any file, within limits."""

import bz2
import io
import random
import re
import stat
import tarfile
import warnings
import zipfile
from email.message import EmailMessage

import pytest

from gta_bench.judging.showing.draft import EvidenceLimits
from tests.content import samples
from tests.judging.shown import Desk, facts


def test_members_of_an_archive_are_shown_like_files(desk: Desk) -> None:
    """The members of a ZIP deliverable were shown by name only."""
    inner = samples.zipped({"deep.txt": "deep words"})
    data = samples.zipped(
        {"a.csv": "x;y\n1;2\n", "b/c.png": samples.image(20, 10), "d.zip": inner, "e.pdf": "no pdf"}
    )
    shown = desk.show_one("a.zip", data)
    assert facts(shown)["files"] == 4
    assert '[Member "a.csv": csv, 8 bytes; rows 2; columns 2' in shown.text
    assert "x,y\n1,2\n" in shown.text
    assert "deep words" in shown.text
    assert [picture.label for picture in shown.pictures] == ['"b/c.png": picture']
    assert '"e.pdf": its name says pdf (pdf); its bytes are text' in shown.findings
    assert (shown.unshown, shown.cut) == ((), ())


def test_what_is_beyond_the_limits_is_named(desk: Desk) -> None:
    many = samples.zipped({f"{number}.txt": f"text {number}" for number in range(5)})
    shown = desk.show_one("a.zip", many, EvidenceLimits(opened=2))
    assert ("text 1" in shown.text, "text 2" in shown.text, "4.txt" in shown.text) == (
        True,
        False,
        True,
    )
    assert shown.cut == ("of 3 of 5 members only the name is shown",)
    deep = samples.zipped({"x.txt": "bottom"})
    for number in range(4):
        deep = samples.zipped({f"{number}.zip": deep})
    shown = desk.show_one("deep.zip", deep)
    assert "bottom" not in shown.text
    assert any("3 archives deep: its members are only named" in cut for cut in shown.cut)


def test_a_bomb_is_refused_and_named(desk: Desk) -> None:
    shown = desk.show_one("a.zip", samples.bomb({"a.txt": b"text"}, 400))
    assert "unpacks to more than" in shown.unshown[0]
    assert shown.text.startswith("[First bytes]")


def test_a_long_name_of_a_member_stays_short_in_reasons(desk: Desk) -> None:
    """A corrupt byte made a name of thousands of characters, and the reason repeated it twice."""
    name = "word/" + "x\1" * 2500
    data = samples.zipped({"a.txt": "other words", name: "words", "y" * 3000: "more words"})
    broken = bytearray(data)
    broken[data.index(b"PK\3\4", 4)] ^= 0x5A
    shown = desk.show_one("a.zip", bytes(broken))
    assert len(shown.unshown) == 1
    assert shown.unshown[0].startswith(f'member "word/{"x?" * 37}x…": The archive\'s member')
    assert len(shown.unshown[0]) < 400
    assert f'[Member "{"y" * 80}…": text' in shown.text
    assert "other words" in shown.text


def with_bad_members() -> bytes:
    """Two good members, and one of each kind that is broken or unsafe."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("first.txt", "first words")
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("../outside.txt", "outside")
        archive.writestr("twice.txt", "one of them")
        archive.writestr("twice.txt", "the other")
        archive.writestr("spoiled.txt", "spoiled words")
        archive.writestr("inner.zip", b"PK\x03\x04 no archive")
        archive.writestr("last.txt", "last words")
    return stream.getvalue().replace(b"spoiled words", b"SPOILED words")


def test_a_bad_member_does_not_hide_the_others(desk: Desk) -> None:
    """A link, or a wrong checksum, left the judge with the first bytes of the archive."""
    shown = desk.show_one("a.zip", with_bad_members())
    assert facts(shown)["files"] == 8
    for words in ("first words", "one of them", "last words"):
        assert words in shown.text
    for words in ("passwd", "outside\n", "the other", "SPOILED"):
        assert words not in shown.text
    for named in ("link.txt.*a link", "outside.txt.*points out", "twice.txt.*twice",
                  "spoiled.txt.*Bad CRC-32"):  # fmt: skip
        assert any(re.search(named, words) for words in shown.unshown), named


def test_an_archive_that_breaks_off_says_so(desk: Desk) -> None:
    """The rest of a truncated archive was missing, without any note."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        for name in ("a.bin", "b.bin"):
            info = tarfile.TarInfo(name)
            info.size = 100_000
            packed.addfile(info, io.BytesIO(random.Random(name).randbytes(info.size)))
    shown = desk.show_one("a.tgz", stream.getvalue()[:150_000])
    assert "a.bin" in shown.text
    assert 'member "(what follows)": the archive breaks off there' in shown.unshown[0]


def tar(mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as packed:  # type: ignore[call-overload]
        info = tarfile.TarInfo("a/notes.txt")
        info.size = 5
        packed.addfile(info, io.BytesIO(b"words"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.tar", tar("w")), ("a.tgz", tar("w:gz")), ("a.tar.xz", tar("w:xz"))],
)
def test_tar_archives_are_opened_and_links_are_not_followed(
    desk: Desk, name: str, data: bytes
) -> None:
    shown = desk.show_one(name, data)
    assert (shown.kind, "words" in shown.text, "root:" in shown.text) == ("packed", True, False)
    assert "of 1 of 2 members only the name is shown" in shown.cut


def test_a_packed_file_is_unpacked(desk: Desk) -> None:
    shown = desk.show_one("table.csv.bz2", bz2.compress(b"a;b\n1;2\n"))
    assert '[Member "table.csv": csv' in shown.text
    assert shown.kind == "packed", "it was called tar"
    broken = desk.show_one("b.gz", b"\x1f\x8b" + bytes(20))
    assert "It is broken" in broken.unshown[0]


def test_a_mail_has_its_headers_bodies_and_attachments(desk: Desk) -> None:
    message = EmailMessage()
    message["Subject"] = "Grüße"
    message.set_content("Body text.")
    message.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="t.csv")
    inner = EmailMessage()
    inner.set_content("Forwarded text.")
    message.add_attachment(inner)
    shown = desk.show_one("a.eml", message.as_bytes())
    for words in ("Subject: Grüße", "Body text.", '[Member "t.csv"', "Forwarded text."):
        assert words in shown.text, words


def test_archives_that_nothing_opens_say_so(desk: Desk) -> None:
    shown = desk.show_one("a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(50))
    assert shown.unshown == ("its members: 7z archives are not opened",)
