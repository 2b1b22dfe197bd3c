"""Several documents in one LibreOffice process, and each alone if that fails."""

import asyncio
from collections.abc import Mapping

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.content.identify import Identity, identify
from gta_bench.errors import ConfinedError, ToolError
from gta_bench.judging.showing import pages
from gta_bench.judging.showing.draft import settle
from gta_bench.judging.showing.pages import Document, start_printing, to_document
from gta_bench.tools.contract import Equipment
from tests.content import samples

WORD = samples.docx(samples.paragraph("x"))


class Office:
    """What LibreOffice would do, and what it was asked for; `bad` documents stop the process."""

    def __init__(self, *bad: str) -> None:
        self.bad = bad
        self.asked: list[list[str]] = []

    async def all(
        self, jail: Jail, files: Mapping[str, bytes], *, to: str, seconds: float
    ) -> dict[str, bytes]:
        self.asked.append(list(files))
        if set(self.bad) & set(files):
            raise ConfinedError("stopped", cause="timeout", jail="none", seconds=1.0)
        return {name: to.encode() for name in files if name != "9.docx"}

    async def one(self, jail: Jail, name: str, data: bytes, *, to: str, seconds: float) -> bytes:
        made = await self.all(jail, {name: data}, to=to, seconds=seconds)
        if name not in made:
            raise ToolError("LibreOffice could not read the file.")
        return made[name]


def printed(
    office: Office, documents: list[Document], equipment: Equipment, patch: pytest.MonkeyPatch
) -> dict[str, object]:
    patch.setattr(pages, "convert_all", office.all)
    patch.setattr(pages, "convert", office.one)
    patch.setattr(pages, "missing_office", lambda jail: None)

    async def run() -> dict[str, object]:
        async with asyncio.TaskGroup() as group:
            jobs = start_printing(documents, group, equipment, slots=2, seconds=9.0)
            return {key: await settle(job()) for key, job in jobs.items()}

    return asyncio.run(run())


def words(count: int) -> list[Document]:
    return [Document(str(number), f"{number}.docx", WORD) for number in range(count)]


def test_documents_are_spread_over_the_slots_and_sheets_go_apart(
    equipment: Equipment, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office()
    sheet = Document("s", "s.xlsx", samples.workbook())
    found = printed(office, [*words(5), sheet], equipment, monkeypatch)
    assert sorted(map(len, office.asked)) == [1, 2, 3]
    assert found["0"] == b"pdf"
    assert b"SinglePageSheets" in bytes(found["s"])  # type: ignore[call-overload]


def test_a_document_that_stops_the_process_does_not_affect_others(
    equipment: Equipment, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = printed(Office("1.docx"), words(4), equipment, monkeypatch)
    assert [found[key] for key in "023"] == [b"pdf"] * 3
    assert isinstance(found["1"], ConfinedError)


def test_a_document_that_fails_alone_is_not_tried_again(
    equipment: Equipment, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office("0.docx")
    assert isinstance(printed(office, words(1), equipment, monkeypatch)["0"], ConfinedError)
    assert len(office.asked) == 1
    office = Office()
    unread = [Document("9", "9.docx", WORD)]
    assert "could not read" in str(printed(office, unread, equipment, monkeypatch)["9"])


def test_a_zip_bomb_never_reaches_libreoffice(
    equipment: Equipment, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office()
    bomb = Document("b", "b.docx", samples.bomb(samples.unzipped(WORD), 40))
    found = printed(office, [bomb], equipment, monkeypatch)
    assert office.asked == []
    assert isinstance(found["b"], ToolError)


@pytest.mark.parametrize(
    ("name", "data", "given"),
    [
        ("a.docx", WORD, "7.docx"),
        ("lie.pdf", WORD, "7.docx"),
        ("a.XLS", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "7.xls"),
        ("a", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "7.doc"),
        ("a.rtf", rb"{\rtf1}", "7.rtf"),
        ("a.txt", b"x", None),
    ],
)
def test_a_document_gets_a_name_of_ours(name: str, data: bytes, given: str | None) -> None:
    identity: Identity = identify(name, data)
    made = to_document(7, "key", identity, data)
    assert (made.name if made else None) == given
