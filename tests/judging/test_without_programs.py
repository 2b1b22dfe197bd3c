"""A machine with a jail and without LibreOffice, Chromium and weights: all else is shown."""

from dataclasses import replace

import pytest

from gta_bench.content import browser, libreoffice
from gta_bench.judging.evidence import EvidenceLimits
from gta_bench.records.evidence import FileEvidence
from gta_bench.tools.contract import Equipment
from tests.content import samples
from tests.content.films import counting_film, ffmpeg
from tests.judging.shown import Desk, facts
from tests.needs import require_programs

MISSING = "LibreOffice is not installed."
Shown = dict[str, FileEvidence]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, equipment: Equipment) -> Shown:
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
        patch.setattr(libreoffice, "office_program", lambda: None)
        patch.setattr(browser, "browser_program", lambda: None)
        return Desk(folder, replace(equipment, weights=folder)).show(files, limits)


def test_documents_have_their_text_and_say_that_pages_are_missing(shown: Shown) -> None:
    assert "Words" in shown["a.docx"].text
    assert shown["a.docx"].unshown == (f"pictures of its pages: {MISSING}",)
    assert "it holds macros; they were not run" in shown["a.docx"].findings
    assert shown["a.pptx"].unshown == (f"pictures of its slides: {MISSING}",)
    assert facts(shown["a.pptx"]) == {
        "slides": 3, "hidden slides": 1, "words": facts(shown["a.pptx"])["words"], "tables": 1,
        "charts": 2, "pictures": 1, "slides with notes": 1,
    }  # fmt: skip
    assert shown["a.odt"].unshown == (f"its pages and text: {MISSING}",)
    assert shown["a.svg"].unshown == ("a picture of the drawing: Chromium is not installed.",)


def test_a_workbook_without_values_says_so(shown: Shown) -> None:
    assert "=SUM(A1:C1)" in shown["a.xlsx"].text
    assert "6.5" in shown["a.xlsx"].text
    assert 'formula errors: "Sum!A2 #DIV/0!"' in shown["a.xlsx"].findings
    assert set(shown["b.xlsx"].unshown) == {
        f"pictures of its sheets: {MISSING}",
        f"the values of 2 formulas that were saved without them: {MISSING}",
    }
    assert "sheet 2 is not shown as text" in shown["b.xlsx"].cut


def test_pages_of_a_pdf_file_need_no_other_program(shown: Shown) -> None:
    assert [picture.label for picture in shown["a.pdf"].pictures] == ["page 1 of 3", "page 2 of 3"]
    assert shown["a.pdf"].cut == ("page 3 is not shown as a picture",)
    assert "Page 2" in shown["a.pdf"].text
    assert shown["scan.pdf"].text == ""
    assert "no page has text of its own" in shown["scan.pdf"].findings[0]


def test_pictures_sound_and_film(shown: Shown) -> None:
    assert len(shown["a.gif"].pictures) == 3
    assert "the picture is blank: all of it has one colour" in shown["blank.png"].findings
    assert shown["a.wav"].pictures[0].label.startswith("waveform")
    assert shown["a.wav"].unshown == ("no transcript: The weights of Moonshine tiny are not here.",)
    assert "the sound is silent throughout" in shown["silent.wav"].findings
    assert facts(shown["silent.wav"])["share of silence"] == 1.0
    assert len(shown["a.mp4"].pictures) == 8
    assert facts(shown["a.mp4"])["has sound"] is False


@pytest.mark.parametrize("name", ["broken.docx", "broken.pptx", "broken.mp3", "broken.png"])
def test_broken_files_say_what_is_missing_and_show_their_bytes(shown: Shown, name: str) -> None:
    assert shown[name].unshown
    assert shown[name].text or shown[name].pictures


def test_nothing_else_is_missing(shown: Shown) -> None:
    whole = {name for name, file in shown.items() if not file.unshown}
    assert whole == {"a.pdf", "scan.pdf", "a.gif", "blank.png", "a.mp4"}
