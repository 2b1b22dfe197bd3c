"""A machine with a jail and without LibreOffice, Chromium and weights: all else can be judged."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from gta_bench.content import browser, libreoffice
from gta_bench.errors import EvidenceFailed
from gta_bench.judging.showing.draft import EvidenceLimits
from gta_bench.records.evidence import FileEvidence
from gta_bench.tools.contract import Equipment
from tests.content import samples
from tests.content.films import counting_film, ffmpeg
from tests.judging.shown import Desk, facts
from tests.needs import require_programs

OFFICE = "LibreOffice is not installed."
BROWSER = "Chromium is not installed."
WEIGHTS = "The weights of Moonshine tiny are not here."
Shown = dict[str, FileEvidence]


@dataclass
class Outcome:
    """Single files: what can be shown of them, or why they cannot be judged."""

    shown: Shown = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    async def look(self, desk: Desk, files: dict[str, bytes], limits: EvidenceLimits) -> None:
        for name, data in files.items():
            try:
                self.shown[name] = (await desk.make({name: data}, limits)).deliverables[0]
            except EvidenceFailed as exc:
                self.failed[name] = str(exc)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, equipment: Equipment) -> Outcome:
    require_programs("ffmpeg")
    folder = tmp_path_factory.mktemp("bare")
    three = [samples.words(f"Page {number}") for number in range(3)]
    source = ("-f", "lavfi", "-i", "sine=d=1")
    files = {
        "a.docx": samples.docx(
            samples.paragraph("Words 🚀") + samples.word_table([["a", "b"]]),
            {"word/vbaProject.bin": b"x"},
        ),
        "a.pptx": samples.deck(),
        "a.xlsx": samples.calculated_workbook(),
        "b.xlsx": samples.workbook(),
        "a.pdf": samples.pdf(three),
        "scan.pdf": samples.scan("only a picture"),
        "a.odt": samples.zipped({"mimetype": "application/vnd.oasis.opendocument.text"}),
        "a.gif": samples.film(9),
        "blank.png": samples.image(2000, 10),
        "a.wav": ffmpeg(folder, "a.wav", *source),
        "silent.wav": ffmpeg(folder, "s.wav", "-f", "lavfi", "-i", "anullsrc", "-t", "1"),
        "a.mp4": counting_film(folder, "a.mp4", frames=20),
        "a.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='http://web.invalid/'/></svg>",
        "broken.docx": samples.docx("<w:p>"),
        "broken.pptx": samples.zipped({"[Content_Types].xml": samples.CONTENT_TYPES}),
        "broken.mp3": b"ID3" + bytes(500),
        "broken.png": samples.image(9, 9)[:40],
    }
    limits = EvidenceLimits(pages=2, sound_seconds=0.5, sheets=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libreoffice, "find_libreoffice", lambda: None)
        patch.setattr(browser, "find_browser", lambda: None)
        found = Outcome()
        desk = Desk(folder, replace(equipment, weights=folder))
        asyncio.run(found.look(desk, files, limits))
        return found


@pytest.fixture
def shown(outcome: Outcome) -> Shown:
    return outcome.shown


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("a.docx", f"pictures of its pages: {OFFICE}"),
        ("a.pptx", f"pictures of its slides: {OFFICE}"),
        ("a.xlsx", f"that were saved to be calculated when opened: {OFFICE}"),
        ("b.xlsx", f"that were saved without values: {OFFICE}"),
        ("a.odt", f"its text: {OFFICE}"),
        ("a.svg", f"a picture of the drawing: {BROWSER}"),
        ("a.wav", f"what is said in it: {WEIGHTS}"),
        ("silent.wav", f"what is said in it: {WEIGHTS}"),
        ("broken.docx", OFFICE),
        ("broken.pptx", OFFICE),
    ],
)
def test_a_file_that_needs_a_missing_program_is_not_judged(
    outcome: Outcome, name: str, cause: str
) -> None:
    assert cause in outcome.failed[name]
    assert "nstall" in outcome.failed[name] or "gta tools fetch" in outcome.failed[name]


def test_pages_of_a_pdf_file_need_no_other_program(shown: Shown) -> None:
    assert [picture.label for picture in shown["a.pdf"].pictures] == ["page 1 of 3", "page 2 of 3"]
    assert shown["a.pdf"].cut == ("page 3 is not shown as a picture",)
    assert "Page 2" in shown["a.pdf"].text
    assert shown["scan.pdf"].text == ""
    assert "no page has text of its own" in shown["scan.pdf"].findings[0]


def test_pictures_and_film(shown: Shown) -> None:
    assert len(shown["a.gif"].pictures) == 3
    blank = "the picture is blank: all of it has one colour"  # codespell:ignore
    assert blank in shown["blank.png"].findings
    assert len(shown["a.mp4"].pictures) == 8
    assert facts(shown["a.mp4"])["has sound"] is False


@pytest.mark.parametrize("name", ["broken.png"])
def test_broken_files_say_what_is_missing_and_show_their_bytes(shown: Shown, name: str) -> None:
    assert shown[name].unshown
    assert shown[name].text or shown[name].pictures


def test_nothing_else_is_missing(outcome: Outcome) -> None:
    assert {name for name, file in outcome.shown.items() if not file.unshown} == {
        "a.pdf", "scan.pdf", "a.gif", "blank.png", "a.mp4",
    }  # fmt: skip
    assert len(outcome.failed) == 11
