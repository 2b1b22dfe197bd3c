"""One file of each kind, as the judge sees it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.content.kinds import KINDS
from gta_bench.errors import EvidenceFailed
from gta_bench.judging.showing.catalog import SHOW
from gta_bench.records.evidence import FileEvidence
from gta_bench.tools.contract import Equipment
from tests.judging.kinds import one_of_each
from tests.judging.shown import Desk, facts
from tests.needs import needs
from tests.tools.media_weights import fetch_moonshine

pytestmark = [pytest.mark.slow, needs("bwrap", "chromium", "ffmpeg", "npm", "soffice")]

REPORT = ("2026 年第三季度市场报告", "华东 East", "嵌套列表")
SPEECH = "Ever tried, ever failed"


class Shown(Mapping[str, FileEvidence]):
    """The evidence by file name, and its pictures."""

    def __init__(self, desk: Desk, files: dict[str, bytes]) -> None:
        self.desk = desk
        self.files = desk.show(files)

    def __getitem__(self, name: str) -> FileEvidence:
        return self.files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, equipment: Equipment) -> Shown:
    fetch_moonshine()
    folder = tmp_path_factory.mktemp("kinds")
    return Shown(Desk(folder, equipment), one_of_each(folder))


def test_every_kind_has_a_way_to_be_shown() -> None:
    assert set(SHOW) == set(KINDS)


def test_nothing_is_unshown(shown: Shown) -> None:
    assert len(shown) >= 30
    assert {name: file.unshown for name, file in shown.items() if file.unshown} == {}
    assert {file.kind for file in shown.values()} >= {
        "docx", "pptx", "xlsx", "pdf", "csv", "html", "markdown", "text", "json", "code", "png",
        "jpeg", "gif", "svg", "webp", "bmp", "tiff", "avif", "wav", "mp3", "m4a", "flac", "ogg",
        "mp4", "mov", "webm", "zip", "odt", "odp", "rtf", "office-97", "unknown", "empty",
    }  # fmt: skip


def test_every_picture_is_there_within_the_bound(shown: Shown) -> None:
    pictures = [(file, n) for file in shown.values() for n in range(len(file.pictures))]
    assert len(pictures) > 50
    for file, number in pictures:
        image = shown.desk.picture(file, number)
        assert max(image.size) <= 1568
        extremes = [high - low for low, high in image.getextrema()]  # type: ignore[misc]
        assert max(extremes) > 20, f"{file.path} {file.pictures[number].label} is blank"


DOCUMENTS = [
    ("report.docx", {"pages": 2, "pictures": 2, "charts": 0}),
    ("report.pdf", {"pages": 2, "tables": 1, "pages without text": 0}),
    ("other.odt", {"pages": 2, "charts": 0}),
    ("other.rtf", {"pages": 2}),
    ("old.doc", {"pages": 2}),
]


@pytest.mark.parametrize(("name", "expected"), DOCUMENTS)
def test_documents(shown: Shown, name: str, expected: dict[str, object]) -> None:
    file = shown[name]
    assert {key: facts(file)[key] for key in expected} == expected
    assert 150 < facts(file)["words"] < 250
    assert [picture.label for picture in file.pictures] == ["page 1 of 2", "page 2 of 2"]
    for words in REPORT:
        assert words in file.text


@pytest.mark.parametrize("name", ["deck.pptx", "other.odp"])
def test_decks(shown: Shown, name: str) -> None:
    file = shown[name]
    assert len(file.pictures) == 3
    assert "要点一" in file.text
    assert (file.pictures[0].width, file.pictures[0].height) == (1568, 882)


def test_a_workbook(shown: Shown) -> None:
    file = shown["budget.xlsx"]
    found = facts(file)
    assert (found["sheets"], found["formulas"], found["formula errors"]) == (2, 4, 1)
    assert (found["charts"], found['size of "Data"']) == (1, "1,000 rows, 3 columns")
    assert "tea,2.5,4,10" in file.text
    assert "D4 =SUM(D2:D3)" in file.text
    assert 'formula errors: "Budget!D5 #DIV/0!"' in file.findings
    assert any("4 formulas were saved without values" in words for words in file.findings)
    assert 'rows 201 to 1,000 of sheet "Data" are not shown' in file.cut
    assert [picture.label for picture in file.pictures] == ['sheet "Budget"', 'sheet "Data"']


def test_an_old_workbook(shown: Shown) -> None:
    assert len(shown["old.xls"].pictures) == 2
    assert "#DIV/0!" in shown["old.xls"].text


def test_a_page(shown: Shown) -> None:
    file = shown["page.html"]
    found = facts(file)
    assert (found["title"], found["links"], found["broken links"]) == ("Shop", 3, 2)
    assert 'broken links: "more.html", "#nowhere"' in file.findings
    away = 'content from the web that was not loaded: "https://web.invalid/a.png"'
    assert away in file.findings
    assert found["script errors"] == 1
    assert len(file.pictures) == 2
    assert "tea\ncoffee" in file.text, "what scripts write is shown"
    assert "undefinedFunction();" in file.text, "and so is the source"
    top = shown.desk.picture(file)
    assert (0, 128, 128) in {color for _, color in top.getcolors(1 << 20) or ()}, "its style sheet"


def test_texts_and_tables(shown: Shown) -> None:
    assert shown["notes.txt"].text == shown["README"].text
    assert "中文" in shown["notes.txt"].text
    assert 'broken links: "inputs/tall.png", "nowhere.png"' in shown["notes.md"].findings
    assert facts(shown["data.json"])["valid JSON"] is True
    assert "def total" in shown["total.py"].text
    assert shown["table.csv"].cut == ("rows 201 to 500 are not shown",)
    assert facts(shown["table.csv"])["rows"] == 500
    assert "a/readme.txt" in shown["archive.zip"].text
    assert "Notes for the meeting." in shown["archive.zip"].text
    assert shown["unknown.bin"].text.startswith("[First bytes]\n00000000  00 01 02")
    assert shown["empty.txt"].findings == ("the file is empty",)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp", "tiff", "avif"])
def test_pictures(shown: Shown, suffix: str) -> None:
    file = next(file for name, file in shown.items() if name.endswith(suffix))
    found = facts(file)
    assert (found["width"], found["height"]) == (3000, 200)
    assert (file.pictures[0].width, file.pictures[0].height) == (1568, 105)
    assert file.cut == ("the picture is shown smaller than its 3000 x 200",)


def test_moving_and_drawn_pictures(shown: Shown) -> None:
    labels = [picture.label for picture in shown["moving.gif"].pictures]
    assert labels == ["frame 1 of 12", "frame 7 of 12", "frame 12 of 12"]
    assert facts(shown["moving.gif"])["frames"] == 12
    logo = shown.desk.picture(shown["logo.svg"])
    assert logo.size == (1000, 667)
    assert logo.getpixel((266, 333)) == (0x1F, 0x6F, 0xEB)


@pytest.mark.parametrize("suffix", ["wav", "mp3", "m4a", "flac", "ogg"])
def test_sounds(shown: Shown, suffix: str) -> None:
    file = shown[f"speech.{suffix}"]
    found = facts(file)
    assert found["seconds"] == pytest.approx(10, abs=0.1)
    assert found["loudness in LUFS"] == pytest.approx(-30.5, abs=1)
    assert found["peak level in dBFS"] == pytest.approx(-10.7, abs=1.5)
    assert found["has sound"] is True
    assert SPEECH in file.text
    assert [picture.label for picture in file.pictures] == [
        "waveform of the sound, from beginning to end"
    ]


@pytest.mark.parametrize(("suffix", "frames"), [("mp4", 50), ("mov", 50), ("webm", 25)])
def test_films(shown: Shown, suffix: str, frames: int) -> None:
    file = shown[f"film.{suffix}"]
    found = facts(file)
    assert (found["resolution"], found["frames"]) == ("320 x 240", frames)
    assert found["has sound"] is (suffix != "webm")
    labels = [picture.label for picture in file.pictures if picture.label.startswith("frame")]
    assert len(labels) == 8
    assert labels[0] == f"frame 1 of {frames}, at 0.00 s"
    assert labels[-1].startswith(f"frame {frames} of {frames}, at ")


def test_under_landlock_documents_and_pages_are_not_judged(
    tmp_path: Path, equipment: Equipment, shown: Shown
) -> None:
    """LibreOffice and Chromium do not run there: a score without pages would be another score."""
    with Jail("landlock", slots=2) as jail:
        desk = Desk(tmp_path, replace(equipment, jail=jail))
        for name, program in (("report.docx", "LibreOffice"), ("page.html", "Chromium")):
            data = shown.desk.files.read(shown[name].digest)
            with pytest.raises(
                EvidenceFailed, match=f"{program} does not run in the Landlock jail"
            ):
                desk.show_one(name, data)
        assert desk.show_one("notes.txt", b"text").text == "text"
