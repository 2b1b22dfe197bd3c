"""Works that once broke a check, which left their leaves without a score instead of with zeros."""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.forge.catalog import FAMILIES
from gta_bench.forge.draft import TaskDraft, Work
from gta_bench.forge.files import pack
from gta_bench.forge.inside import guard_check
from gta_bench.forge.writing import Order, make_task
from gta_bench.records.verdicts import Scored, Unscored
from tests.checks.works import decide, deliver, stop_readers
from tests.content.conftest import jail
from tests.forge.scored_works import list_passed

__all__ = ["jail"]


def forge(name: str) -> tuple[TaskDraft, Work]:
    draft = make_task(FAMILIES[name], Order("public", "hostile", 1), 1)
    return draft, next(iter(draft.gold.values()))


def test_a_slot_with_thousands_of_digits(tmp_path: Path, jail: Jail) -> None:
    draft, gold = forge("schedule")
    head, *rows = gold.files["plan.csv"].decode().splitlines()
    long = "\n".join([head, *(f"{row.rpartition(',')[0]},00000000{'1' * 5000}" for row in rows)])
    assert list_passed(draft, Work({"plan.csv": long.encode()}), tmp_path, jail) == set()


def write_png(width: int, height: int, *parts: bytes) -> bytes:
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
    chunks += [(b"IDAT", part) for part in parts]
    written = (struct.pack(">I", len(data)) + kind + data + b"\0\0\0\0" for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


@pytest.mark.parametrize("damage", ["digits", "width", "chunks", "depth"])
def test_boxes_and_pictures_of_absurd_sizes(damage: str, tmp_path: Path, jail: Jail) -> None:
    draft, gold = forge("annotate")
    files = dict(gold.files)
    if damage == "digits":
        files["boxes.json"] = b'[{"label": "x", "box": [1, 2, 3, ' + b"9" * 5000 + b"]}]"
    elif damage == "depth":
        files["boxes.json"] = b"[" * 100_000
    elif damage == "width":
        files["marked.png"] = write_png(0, 2**31, zlib.compress(bytes(2**20)))
    else:
        files["marked.png"] = write_png(640, 480, *[b"x"] * 100_000)
    passed = list_passed(draft, Work(files), tmp_path, jail)
    assert passed == ({"found", "count", "labels"} if damage in ("width", "chunks")
                      else {"frames", "size"})  # fmt: skip


def damage_archives(tidy: bytes) -> Iterator[bytes]:
    """Archives with a damaged stream, and with a member of a gigabyte."""
    broken = bytearray(tidy)
    at = 30 + struct.unpack("<H", tidy[26:28])[0]
    broken[at : at + 3] = b"\xff\xff\xff"
    yield bytes(broken)
    with zipfile.ZipFile(io.BytesIO(tidy)) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    yield pack({**members, next(iter(members)): bytes(80 * 2**20)})


def test_archives_that_cannot_be_unpacked(tmp_path: Path, jail: Jail) -> None:
    draft, gold = forge("bundle")
    for damaged in damage_archives(gold.files["bundle.zip"]):
        files = {**gold.files, "bundle.zip": damaged}
        passed = list_passed(draft, Work(files), tmp_path, jail)
        assert not passed & {"contents", "copies", "others"}
        assert passed >= {"listed", "hashes", "sizes", "kinds", "total"}


GUARDED = """
def own(work):
    if work.answer == "loop":
        while True:
            pass
    if work.answer == "memory":
        raise MemoryError
    if work.answer == "own":
        return bool(work.text("no.md"))
    return own(work)
"""


@pytest.mark.parametrize(
    ("answer", "says"),
    [("loop", "TimeoutError"), ("memory", "MemoryError"), ("", "RecursionError"),
     ("own", "not delivered")],
)  # fmt: skip
def test_a_guarded_check_decides_every_work(jail: Jail, answer: str, says: str) -> None:
    source = guard_check(GUARDED, ["own"]).decode().replace("SECONDS = 20", "SECONDS = 0.2")
    check = {"is": "python", "run": "checks/own.py:own", "source": source}
    verdict = decide(deliver({}, jail, answer=answer), check)
    assert isinstance(verdict, Scored) and verdict.value == 0, verdict
    assert says in verdict.reason


def test_a_guarded_check_does_not_blame_a_work_for_this_machine(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_readers(monkeypatch)
    deck = next(iter(forge("deck")[1].files.values()))
    source = guard_check("def own(work): return work.text('deck.pptx') == ''", ["own"]).decode()
    check = {"is": "python", "run": "checks/own.py:own", "source": source}
    verdict = decide(deliver({"deck.pptx": deck}, jail), check)
    assert isinstance(verdict, Scored | Unscored)
    assert isinstance(verdict, Unscored), json.dumps(verdict.reason)
