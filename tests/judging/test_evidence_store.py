"""Evidence is made once, completely or not at all, and names its renderer."""

import asyncio
from pathlib import Path

import pytest

from gta_bench.errors import ConfinedError, EvidenceFailed, RunError
from gta_bench.judging.evidence_store import EvidenceStore
from gta_bench.judging.run_evidence import make_evidence
from gta_bench.judging.showing import catalog
from gta_bench.judging.showing.catalog import SHOW
from gta_bench.judging.showing.draft import Draft, EvidenceLimits
from gta_bench.records.evidence import FileEvidence
from gta_bench.settings import Settings
from gta_bench.tools.contract import Equipment, Unavailable
from tests.judging.shown import Desk, facts
from tests.needs import needs


@pytest.fixture
def bare(tmp_path: Path) -> Desk:
    """A machine without a jail."""
    return Desk(tmp_path, Equipment(Settings(), no_jail=Unavailable("No jail.", "Get one.")))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which files are really shown, in order."""
    seen: list[str] = []

    async def counted(draft: Draft) -> None:
        seen.append(draft.subject.path)
        await asyncio.sleep(0.05)
        await SHOW["text"](draft)

    monkeypatch.setattr(catalog, "SHOW", {**SHOW, "text": counted})
    return seen


def test_a_second_call_makes_nothing_and_gives_the_same(bare: Desk, calls: list[str]) -> None:
    files = {"a.txt": b"one", "b.txt": b"two"}
    first, second = asyncio.run(bare.make(files)), asyncio.run(bare.make(files))
    assert first == second
    assert first.digest == second.digest
    assert sorted(calls) == ["a.txt", "b.txt"]


def test_the_same_content_under_two_names_is_made_once(bare: Desk, calls: list[str]) -> None:
    shown = bare.show({"a.txt": b"one", "deep/b.txt": b"one"})
    assert len(calls) == 1
    assert [file.path for file in shown.values()] == ["a.txt", "deep/b.txt"]
    assert shown["a.txt"].text == shown["deep/b.txt"].text == "one"


def test_another_suffix_limit_or_reference_is_other_evidence(bare: Desk, calls: list[str]) -> None:
    bare.show({"a.txt": b"one"})
    bare.show({"a.log": b"one"})
    bare.show({"a.txt": b"one"}, EvidenceLimits(characters=2))
    assert len(calls) == 3
    page = b"![](plot.png)"
    assert facts(bare.show({"a.md": page})["a.md"])["broken links"] == 1
    assert facts(bare.show({"a.md": page, "plot.png": b"x"})["a.md"])["broken links"] == 0


def test_callers_of_the_same_file_at_the_same_time_make_it_once(
    bare: Desk, calls: list[str]
) -> None:
    async def many() -> list[object]:
        names = [{"a.txt": b"one", f"{n}.txt": f"own {n % 3}".encode()} for n in range(9)]
        return list(await asyncio.gather(*(bare.make(files) for files in names)))

    assert len(asyncio.run(many())) == 9
    assert len(calls) == 4


def test_a_call_that_is_broken_off_leaves_no_half_entry(
    bare: Desk, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken_off() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await bare.make({"a.txt": b"one"})

    asyncio.run(broken_off())
    assert list(bare.store.folder.glob("**/*.json")) == []
    assert bare.show({"a.txt": b"one"})["a.txt"].text == "one"


def test_an_entry_that_is_damaged_or_lost_its_picture_is_made_again(
    desk: Desk, calls: list[str]
) -> None:
    (bare,) = desk.show({"a.txt": b"one"}).values()
    (entry,) = desk.store.folder.glob("**/*.json")
    entry.write_bytes(entry.read_bytes()[:40])
    assert desk.show({"a.txt": b"one"})["a.txt"] == bare
    assert len(calls) == 2
    from tests.content.samples import image

    shown = desk.show_one("a.png", image(30, 20))
    digest = shown.pictures[0].digest
    assert desk.store.picture(digest)
    desk.store.pictures.path(digest).unlink()
    with pytest.raises(RunError, match="has no file"):
        desk.store.picture(digest)
    assert desk.show_one("a.png", image(30, 20)) == shown
    assert desk.picture(shown).size == (30, 20)


def test_what_ran_out_of_time_is_made_again_by_the_next_run(
    bare: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timeout on a busy machine was stored permanently, and the judge never saw the file."""
    tries: list[str] = []

    async def slow_at_first(draft: Draft) -> None:
        if draft.subject.path != "a.txt":  # the bundled sample, which is fine
            return await SHOW["text"](draft)
        tries.append(draft.subject.path)
        if len(tries) > 1:
            return await SHOW["text"](draft)
        problem = ConfinedError("slow", cause="timeout", jail="no", seconds=60.0)
        draft.add_missing("its text", problem)

    monkeypatch.setattr(catalog, "SHOW", {**SHOW, "text": slow_at_first})
    late = bare.show_one("a.txt", b"one")
    assert late.unshown == ("its text: slow",)
    assert bare.show_one("a.txt", b"one") == late
    assert len(tries) == 1, "the same run does not wait again"
    assert list(EvidenceStore(bare.store.folder).files()) == [late], "readers see late evidence"

    bare.store = EvidenceStore(bare.store.folder)
    complete = bare.show_one("a.txt", b"one")
    assert (complete.text, complete.unshown, len(tries)) == ("one", (), 2)
    assert {file.digest: file for file in bare.store.files()} == {complete.digest: complete}
    bare.store = EvidenceStore(bare.store.folder)
    assert bare.show_one("a.txt", b"one") == complete
    assert len(tries) == 2


def test_inputs_are_shown_after_deliverables(bare: Desk) -> None:
    kept = bare.keep({"out.txt": b"made", "in.txt": b"given"})

    made = asyncio.run(
        make_evidence(
            "The answer\0.",
            kept[:1],
            kept[1:],
            files=bare.files,
            store=EvidenceStore(bare.store.folder),
            equipment=bare.equipment,
        )
    )
    assert made.answer == "The answer."
    assert [file.text for file in (*made.deliverables, *made.inputs)] == ["made", "given"]
    assert "jail missing" in made.renderer
    assert "evidence 4" in made.renderer


@needs("chromium")
def test_without_a_jail_text_is_shown_and_nothing_else_is_judged(bare: Desk) -> None:
    from tests.content import samples

    shown = bare.show({"a.md": b"# Title\n", "a.csv": b"a,b\n1,2\n"})
    assert shown["a.md"].text == "# Title\n"
    assert shown["a.csv"].text == "a,b\n1,2\n"
    files = {
        "a.html": b"<h1>Hello</h1>",
        "a.docx": samples.docx(samples.paragraph("words")),
        "a.png": samples.image(3, 3),
        "a.wav": b"RIFF\0\0\0\0WAVEfmt ",
    }
    for name, data in files.items():
        with pytest.raises(EvidenceFailed, match=f'"{name}", .* (No|without a) jail'):
            bare.show_one(name, data)
    assert len(list(bare.store.files())) == 2


def names(file: FileEvidence) -> list[str]:
    return [finding for finding in file.findings if "name" in finding]


def test_deceptive_names_are_reported(bare: Desk) -> None:
    shown = bare.show(
        {
            "fdp\u202etxt.exe": b"hello",
            "sub/ok.txt": b"hello",
            "a.pdf": b"just words",
            "b.docx": b"PK\x03\x04 broken",
            "c.txt": b"PK\x03\x04 broken",
        }
    )
    assert names(shown["fdp\u202etxt.exe"]) and "invisible" in names(shown["fdp\u202etxt.exe"])[0]
    assert names(shown["sub/ok.txt"]) == []
    assert names(shown["a.pdf"]) == ["its name says pdf (pdf); its bytes are text"]
    assert (shown["a.pdf"].claims, shown["a.pdf"].kind, shown["a.pdf"].text) == (
        "pdf",
        "text",
        "just words",
    )
    assert "no such document, or broken" in names(shown["b.docx"])[0]
    assert names(shown["c.txt"]) == ["its name says text (text); its bytes are zip"]


def test_cuts_are_reported_exactly(bare: Desk) -> None:
    limits = EvidenceLimits(characters=30, rows=3, columns=2, members=2)
    from tests.content import samples

    shown = bare.show(
        {
            "a.txt": b"0123456789\n" * 5,
            "a.csv": b"a,b,c,d\n" * 9,
            "one.csv": b"a\nb\nc\nd\n",
            "a.zip": samples.zipped({f"{n}.txt": "x" for n in range(4)}),
            "a.bin": bytes(300),
        },
        limits,
    )
    assert shown["a.txt"].text == "0123456789\n0123456789\n01234567"
    assert shown["a.txt"].cut == ("characters 31 to 55 of its text (lines 3 to 6) are not shown",)
    assert shown["a.csv"].text == "a,b\n" * 3
    assert shown["a.csv"].cut == ("rows 4 to 9 are not shown", "columns 3 to 4 are not shown")
    assert shown["one.csv"].cut == ("row 4 is not shown",)
    assert "members 3 to 4 are not listed" in shown["a.zip"].cut
    assert "bytes 257 to 300 are not shown" in shown["a.bin"].cut


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.json", b'{"a": 1}', {"valid JSON": True}),
        ("a.json", b'{"a": 1', {"valid JSON": False}),
        ("a.json", b"[" * 100_000, {"valid JSON": False}),
        ("a.jsonl", b'{"a": 1}\n\n{"b": 2}\n', {"valid JSON": True}),
        ("a.txt", "中文 and words, 12.5 %".encode("gb18030"), {"encoding": "gb18030", "words": 5}),
        ("a.csv", b"=1+1;b\n@x;c\n", {"cells that a spreadsheet would take for formulas": 2}),
        ("a.csv", b"a;b;c\n1;2\n", {"rows": 2, "columns": 3, "separator": ";"}),
        ("a.md", b"[x](#no) [y](#a-title) [z](b.md)\n# A title\n", {"broken links": 2, "links": 3}),
        ("a.py", b"x = 1\n", {"lines": 2}),
    ],
)  # fmt: skip
def test_facts_of_texts(bare: Desk, name: str, data: bytes, expected: dict[str, object]) -> None:
    found = facts(bare.show_one(name, data))
    assert {key: found[key] for key in expected} == expected


def test_an_endless_text_is_read_to_the_end_of_a_line(bare: Desk) -> None:
    data = ("é" * 49 + "\n").encode() * 60_000
    shown = bare.show_one("a.txt", data)
    assert facts(shown)["encoding"] == "utf-8"
    assert shown.cut[0].startswith("bytes 4,194,2")
    assert len(shown.text) == EvidenceLimits().characters
