"""Every kind of check holds for one file and fails for another, and says what it found."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pypandoc
import pytest
from openpyxl import Workbook

from gta_bench.checks.decide import DECIDERS, give_credit
from gta_bench.checks.delivery import CheckedWork
from gta_bench.checks.outcome import Outcome
from gta_bench.confine.jail import Jail
from gta_bench.records.checks import CHECKS
from gta_bench.records.verdicts import Scored, Unscored
from tests.checks.works import INPUT, decide, deliver, points, value
from tests.content import samples
from tests.content.films import counting_film, tone
from tests.needs import needs

CSV = b'Region,Revenue,Year\nNorth,"48,210.55",2025\nSouth,31877.20,2025\nWest,10,2024\n'
PAGE = (
    b"<h1>Plan</h1><p>For all.</p><h2>Costs</h2><table><tr><th>Item</th><th>USD</th></tr>"
    b"<tr><td>Tea</td><td>$2.50</td></tr></table><a href='#lost'>x</a><img src='logo.png'>"
    b"<script>var hidden = 'secret';</script>"
)
NOTES = (
    b"# Plan\n\nTODO: the rest. See [the table](sales.csv).\n\n| a | b |\n|---|---|\n| x | 1 |\n"
)
TREE = json.dumps({"items": [{"id": 1, "name": "tea"}, {"id": 2}], "two words": True}).encode()
WORD = "# Summary\n\nSales grew in the north.\n\n| Region | Revenue |\n|---|---|\n| North | 5 |\n"


def plain_workbook() -> bytes:
    book = Workbook()
    book.active.append(["Region", "Revenue"])  # type: ignore[union-attr]
    out = BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    document = tmp_path_factory.mktemp("word") / "doc.docx"
    pypandoc.convert_text(WORD, "docx", format="gfm", outputfile=str(document))
    return {
        "outputs/sales.csv": CSV,
        "page.html": PAGE,
        "logo.png": samples.image(40, 30),
        "noise.png": samples.noise(64),
        "notes.md": NOTES,
        "tree.json": TREE,
        "book.xlsx": samples.calculated_workbook(),
        "deck.pptx": samples.deck(),
        "doc.docx": document.read_bytes(),
        "report.pdf": samples.pdf([samples.words("Annual report"), samples.words("Page two")]),
        "pack.zip": samples.zipped({"a/one.txt": "1", "two.csv": "2"}),
        "dotted.zip": samples.zipped({"./a/one.txt": "1"}),
        "members.csv": b"ID,Name\nA1,Lars  Lopez\nA2,Ada Lee\n,\n",
        "empty.txt": b"",
        "white.txt": b" \n",
        "broken.xlsx": b"PK\x03\x04 broken",
        "fake.pdf": b"no pdf at all",
        "odd.bin": b"\x00\x01\x02",
        "copy.bin": INPUT,
        "plain.xlsx": plain_workbook(),
    }


@pytest.fixture(scope="module")
def work(files: Mapping[str, bytes], jail: Jail) -> CheckedWork:
    """One delivery for all cases, so that every file is read once."""
    return deliver(files, jail, answer="West trails by 31,867.20 dollars.\n**Answer:** `West`.\n")


HOLDS: list[dict[str, Any]] = [
    {"is": "file.exists", "file": "sales.csv"},
    {"is": "file.exists", "file": "*.pptx"},
    {"is": "file.kind", "file": "logo.png", "kind": "png"},
    {"is": "file.opens", "file": "deck.pptx"},
    {"is": "file.not_input", "file": "sales.csv"},
    {"is": "text.contains", "file": "doc.docx", "all": ["sales GREW"], "none": ["lorem"]},
    {"is": "text.contains", "file": "page.html", "any": ["x", "For all."], "none": ["secret"]},
    {"is": "text.contains", "file": "report.pdf", "all": ["Annual report"]},
    {"is": "text.regex", "file": "sales.csv", "pattern": r"^\w+,", "min": 4, "max": 4},
    {"is": "text.no_placeholder", "file": "doc.docx"},
    {"is": "text.language", "file": "doc.docx", "language": "en"},
    {"is": "doc.heading", "file": "page.html", "texts": ["Plan", "Costs"]},
    {"is": "doc.heading", "file": "doc.docx", "texts": ["Summary"], "level": 1},
    {"is": "doc.heading", "file": "deck.pptx", "texts": ["Results"]},
    {"is": "doc.heading", "file": "notes.md", "texts": ["Plan"]},
    {"is": "doc.size", "file": "report.pdf", "pages": {"min": 2, "max": 2}, "words": {"max": 9}},
    {"is": "doc.size", "file": "deck.pptx", "pages": {"min": 3}},
    {"is": "doc.parts", "file": "deck.pptx", "charts": 2, "tables": 1, "notes": 1, "pictures": 1},
    {"is": "doc.parts", "file": "doc.docx", "tables": 1},
    {"is": "doc.parts", "file": "book.xlsx", "charts": 1},
    {"is": "doc.parts", "file": "page.html", "tables": 1, "pictures": 1},
    {"is": "table.shape", "file": "sales.csv", "rows": {"min": 3}, "columns": {"max": 3},
     "head": ["region"]},
    value("sales.csv", "North", "Revenue", 48210.55),
    value("sales.csv", "North", "Year", "2025"),
    value("page.html", "Tea", "USD", 2.4, within=0.1),
    value("doc.docx", "North", "Revenue", 5.2, rel=0.05),
    value("deck.pptx", "2 3", "a", 1),
    value("notes.md", "x", "b", 1),
    {"is": "table.sum", "file": "sales.csv", "column": "Revenue", "equals": 80087.75,
     "where": {"Year": "2025"}},
    {"is": "table.order", "file": "sales.csv", "by": "Revenue", "desc": True, "unique": True},
    {"is": "table.order", "file": "sales.csv", "by": "Region"},
    value("members.csv", "A2", "Name", "Ada Lee", exact=True),
    value("members.csv", "A1", "Name", "Lars Lopez"),
    {"is": "table.keys", "file": "members.csv", "column": "ID", "all": ["A1"], "only": ["a1", "A2"],
     "once": True},
    {"is": "table.same", "file": "sales.csv", "reference": "gold/a.csv", "key": ["Region"],
     "rows": "Region,Revenue\nWest,10\nNorth,48210.55\nSouth,31877.2\n"},
    {"is": "xlsx.cell", "file": "book.xlsx", "at": "D1", "equals": 6.5, "formula": True},
    {"is": "xlsx.cell", "file": "book.xlsx", "at": "A3", "equals": "shared", "sheet": "Sum"},
    {"is": "xlsx.no_errors", "file": "plain.xlsx"},
    {"is": "json.path", "file": "tree.json", "path": "$.items[*].id", "type": "number", "min": 2},
    {"is": "json.path", "file": "tree.json", "path": "$['two words']", "equals": True},
    {"is": "json.path", "file": "tree.json", "path": "$.items[0].name", "equals": "tea"},
    {"is": "json.path", "file": "tree.json", "path": '$["items"][1].id', "equals": 2},
    {"is": "json.path", "file": "tree.json", "path": "$.items[-1].id", "equals": 2},
    {"is": "json.path", "file": "tree.json", "path": "$.items[*]", "min": 2, "max": 2},
    {"is": "image.facts", "file": "logo.png", "width": {"min": 40, "max": 40}},
    {"is": "image.facts", "file": "noise.png", "height": {"min": 64}, "not_blank": True},
    {"is": "html.links", "file": "notes.md"},
    {"is": "zip.members", "file": "pack.zip", "all": ["*/one.txt"], "none": ["*.exe"]},
    {"is": "zip.members", "file": "dotted.zip", "all": ["a/one.txt"]},
    {"is": "answer.contains", "all": ["west"], "number": 31867.2},
    {"is": "answer.line", "equals": "west"},
]  # fmt: skip
FAILS: list[tuple[dict[str, Any], str]] = [
    ({"is": "file.exists", "file": "no.csv"}, "no.csv: was not delivered; delivered: book.xlsx"),
    ({"is": "file.exists", "file": "*.p*"}, "*.p*: matches several files; delivered: deck.pptx"),
    ({"is": "file.exists", "file": "empty.txt"}, "empty.txt: found 0 bytes"),
    ({"is": "file.exists", "file": "white.txt"}, "white.txt: found 2 bytes of white space"),
    ({"is": "table.shape", "file": "white.txt", "head": ["a"]}, "the columns 'a'; there are none"),
    ({"is": "file.kind", "file": "fake.pdf", "kind": "pdf"}, "found text, wanted pdf"),
    ({"is": "file.opens", "file": "broken.xlsx"}, "broken.xlsx: The file is not a zip archive"),
    ({"is": "file.opens", "file": "odd.bin"}, "which checks cannot read"),
    ({"is": "file.not_input", "file": "copy.bin"}, "found a copy of an input, wanted work of its"),
    ({"is": "doc.size", "file": "doc.docx", "words": {"min": 99}}, "10 words, wanted at least 99"),
    ({"is": "image.text", "file": "sales.csv", "all": ["x"]}, "csv, not a picture"),
    ({"is": "media.shows", "file": "sales.csv", "at": 0, "all": ["x"]}, "csv, not audio or video"),
    ({"is": "media.says", "file": "sales.csv", "all": ["x"]}, "csv, not audio or video"),
    ({"is": "text.contains", "file": "doc.docx", "all": ["grew"], "none": ["north"]}, "'north'"),
    ({"is": "text.contains", "file": "doc.docx", "all": ["Grew"], "case": True}, "no 'Grew'"),
    ({"is": "text.contains", "file": "doc.docx", "any": ["a b c"]}, "none of them"),
    ({"is": "text.contains", "file": "logo.png", "all": ["x"]}, "png, which has no text"),
    ({"is": "text.contains", "file": "empty.txt", "none": ["x"]}, "empty.txt: is empty"),
    ({"is": "text.regex", "file": "sales.csv", "pattern": "zzz"}, "0 matches of 'zzz'"),
    ({"is": "text.no_placeholder", "file": "notes.md"}, "notes.md: found 'todo'"),
    ({"is": "text.no_placeholder", "file": "doc.docx", "more": ["Sales grew"]}, "'sales grew'"),
    ({"is": "text.language", "file": "doc.docx", "language": "de"}, "100% en, wanted de in at le"),
    ({"is": "text.language", "file": "sales.csv", "language": "en"}, "no text in a known language"),
    ({"is": "doc.heading", "file": "page.html", "texts": ["Costs", "Plan"]}, "found 'Plan', 'Cost"),
    ({"is": "doc.heading", "file": "report.pdf", "texts": ["Plan"]}, "found no heading"),
    ({"is": "doc.heading", "file": "sales.csv", "texts": ["Plan"]}, "which has no headings"),
    ({"is": "doc.size", "file": "report.pdf", "pages": {"min": 3}}, "2 pages, wanted at least 3"),
    ({"is": "doc.size", "file": "sales.csv", "pages": {"min": 3}}, "which has no pages"),
    ({"is": "doc.parts", "file": "deck.pptx", "charts": 3}, "found 2 charts, wanted at least 3"),
    ({"is": "doc.parts", "file": "report.pdf", "charts": 1}, "charts of pdf files cannot be"),
    ({"is": "doc.parts", "file": "logo.png", "charts": 1}, "png, which has no such parts"),
    ({"is": "table.shape", "file": "sales.csv", "rows": {"min": 4}}, "3 rows, wanted at least 4"),
    ({"is": "table.shape", "file": "sales.csv", "columns": {"max": 2}}, "found 3 columns"),
    ({"is": "table.shape", "file": "sales.csv", "head": ["City"]}, "no table with the columns 'Ci"),
    (value("sales.csv", "North", "Revenue", 48210.0, within=0.01),
     "sales.csv > North, Revenue: found 48,210.55, wanted 48,210 ± 0.01"),
    (value("sales.csv", "East", "Revenue", 1), "found the rows North, South, West, wanted a row"),
    (value("sales.csv", "North", "Region", 1), "found the rows"),
    (value("sales.csv", "48,210.55", "Region", 1), "found North, wanted 1"),
    (value("sales.csv", "North", "Revenue", "x", sheet="S"), "csv, which has no sheets"),
    (value("book.xlsx", "x", "y", 1, sheet="Total"), "no visible sheet 'Total'; sheets: Sum"),
    (value("logo.png", "x", "y", 1), "png, which has no tables"),
    ({"is": "table.sum", "file": "sales.csv", "column": "Revenue", "equals": 1}, "80,097.75"),
    ({"is": "table.order", "file": "sales.csv", "by": "Revenue"}, "48,210.55 before 31877.20"),
    ({"is": "table.order", "file": "sales.csv", "by": "Year", "desc": True, "unique": True},
     "'2025' more than once"),
    (value("members.csv", "A1", "Name", "Lars Lopez", exact=True), "found 'Lars  Lopez', wanted"),
    (value("members.csv", "A2", "Name", "ada lee", exact=True), "found 'Ada Lee', wanted 'ada"),
    ({"is": "table.keys", "file": "sales.csv", "column": "Region", "all": ["East"]}, "no 'East'"),
    ({"is": "table.keys", "file": "sales.csv", "column": "Region", "only": ["North", "South"]},
     "sales.csv > Region: found 'west', wanted nothing but 2 values"),
    ({"is": "table.keys", "file": "sales.csv", "column": "Year", "once": True},
     "'2025' more than once"),
    ({"is": "table.keys", "file": "plain.xlsx", "column": "Region", "once": True}, "no rows"),
    ({"is": "table.same", "file": "sales.csv", "reference": "g.csv", "key": ["Region"],
      "rows": "Region,Revenue\nWest,11\nNorth,48210.55\nSouth,31877.2\n"}, "found 10, wanted 11"),
    ({"is": "table.same", "file": "sales.csv", "reference": "g.csv", "key": ["Region"],
      "rows": "Region,Revenue\nWest,10\n"}, "found the further rows north, south"),
    ({"is": "table.same", "file": "sales.csv", "reference": "g.csv", "key": ["Region"],
      "rows": "Region\nWest\nNorth\nSouth\nEast\n"}, "lacks the rows east"),
    ({"is": "table.same", "file": "sales.csv", "reference": "g.csv", "key": ["City"],
      "rows": "Region\nWest\n"}, "no column 'City'"),
    ({"is": "xlsx.cell", "file": "book.xlsx", "at": "D1", "equals": 7}, "D1: found 6.5, wanted 7"),
    ({"is": "xlsx.cell", "file": "book.xlsx", "at": "A1", "formula": True}, "wanted a formula"),
    ({"is": "xlsx.cell", "file": "book.xlsx", "at": "Z9", "equals": 1}, "found an empty cell"),
    ({"is": "xlsx.cell", "file": "book.xlsx", "at": "A1", "equals": 1, "sheet": "X"}, "no sheet"),
    ({"is": "xlsx.cell", "file": "sales.csv", "at": "A1", "equals": 1}, "csv, not a workbook"),
    ({"is": "xlsx.no_errors", "file": "book.xlsx"}, "found Sum!A2 #DIV/0!"),
    ({"is": "json.path", "file": "tree.json", "path": "$.items[5]"}, "0 values, wanted at least 1"),
    ({"is": "json.path", "file": "tree.json", "path": "$.items[*]", "max": 1}, "2 values, wanted"),
    ({"is": "json.path", "file": "tree.json", "path": "$.items[0].id", "equals": 3}, "found 1"),
    ({"is": "json.path", "file": "tree.json", "path": "$.items", "type": "object"}, "type object"),
    ({"is": "json.path", "file": "tree.json", "path": "$.items[*].name", "equals": "x"}, '"tea"'),
    ({"is": "json.path", "file": "tree.json", "path": "$.items[-3]"}, "found 0 values"),
    ({"is": "json.path", "file": "notes.md", "path": "$.a"}, "is not valid JSON"),
    ({"is": "json.path", "file": "logo.png", "path": "$.a"}, "png, not JSON"),
    ({"is": "image.facts", "file": "logo.png", "not_blank": True}, "found a single color"),
    ({"is": "image.facts", "file": "logo.png", "height": {"min": 31}}, "30 pixels of height"),
    ({"is": "image.facts", "file": "sales.csv", "not_blank": True}, "csv, not a picture"),
    ({"is": "media.facts", "file": "sales.csv", "audio": True}, "csv, not audio or video"),
    ({"is": "html.links", "file": "page.html"}, "broken links: #lost"),
    ({"is": "html.links", "file": "logo.png"}, "not a page or Markdown"),
    ({"is": "html.opens", "file": "notes.md"}, "markdown, not a page"),
    ({"is": "html.shows", "file": "notes.md", "all": ["tea"]}, "markdown, not a page"),
    ({"is": "zip.members", "file": "pack.zip", "all": ["three.csv"]}, "wanted three.csv"),
    ({"is": "zip.members", "file": "pack.zip", "none": ["*.csv"]}, "found two.csv"),
    ({"is": "zip.members", "file": "sales.csv", "none": ["*.csv"]}, "csv, not a zip archive"),
    ({"is": "answer.contains", "number": 5}, "the answer: found 31,867.2, wanted 5"),
    ({"is": "answer.contains", "any": ["north"]}, "none of them, wanted 'north'"),
    ({"is": "answer.line", "equals": "North"}, "the last line of the answer: found 'West', wanted"),
    ({"is": "answer.line", "equals": 5.0}, "West, wanted 5"),
    ({"is": "answer.line", "equals": "West", "start": "Total"}, "'Answer: West.', wanted Total"),
]  # fmt: skip


@pytest.mark.parametrize("check", HOLDS, ids=lambda check: f"{check['is']} {check.get('file')}")
def test_a_check_holds(work: CheckedWork, check: dict[str, Any]) -> None:
    verdict = decide(work, check)
    assert isinstance(verdict, Scored) and verdict.value == 10, verdict


@pytest.mark.parametrize(
    ("check", "says"), FAILS, ids=lambda one: one["is"] if isinstance(one, dict) else ""
)
def test_a_check_fails_and_says_what_it_found(
    work: CheckedWork, check: dict[str, Any], says: str
) -> None:
    verdict = decide(work, check)
    assert isinstance(verdict, Scored) and verdict.value == 0, verdict
    assert says in verdict.reason


def test_every_kind_has_code_a_true_and_a_false_example() -> None:
    assert list(DECIDERS) == list(CHECKS)
    # Those that need a program, a model or a state, and those of an author, have their own tests.
    apart = {"python", "state.file", "sqlite.query"}
    elsewhere = {"html.opens", "html.shows", "image.text", "media.facts", "media.shows"}
    elsewhere |= {"media.says", *apart}
    assert {*CHECKS} - {check["is"] for check in HOLDS} == elsewhere
    assert {*CHECKS} - {check["is"] for check, _ in FAILS} == apart


@needs("ffmpeg")
def test_length_streams_and_silence_of_media(jail: Jail, tmp_path: Path) -> None:
    files = {
        "film.mp4": counting_film(tmp_path, "film.mp4"),
        "tone.wav": tone(tmp_path, "tone.wav"),
    }
    work = deliver(files, jail)
    film = {"is": "media.facts", "file": "film.mp4"}
    sound = {"is": "media.facts", "file": "tone.wav"}
    for good in (
        {**film, "video": True, "audio": False, "seconds": {"min": 1.9, "max": 2.1}},
        {**film, "width": {"min": 64, "max": 64}, "height": {"max": 48}},
        {**sound, "audio": True, "video": False, "silence": 0.1},
    ):
        assert points(decide(work, good)) == 10
    bad: list[tuple[dict[str, Any], str]] = [
        ({**film, "audio": True}, "found no audio, wanted audio"),
        ({**film, "silence": 0.5}, "found no audio"),
        ({**film, "seconds": {"min": 3}}, "2 seconds, wanted at least 3"),
        ({**film, "width": {"min": 65}}, "64 pixels of width, wanted at least 65"),
        ({**sound, "height": {"min": 1}}, "0 pixels of height"),
    ]
    for check, says in bad:
        verdict = decide(work, check)
        assert isinstance(verdict, Scored) and verdict.value == 0 and says in verdict.reason


def test_marks_of_markdown_are_read_as_they_are_shown(jail: Jail, tmp_path: Path) -> None:
    """The reader of documents writes a dollar sign with a backslash."""
    word = "# A*B\n\nTotal profit: $905,467\n\n|Region|Profit|\n|---|---|\n|A_B|$281,553|\n"
    word = word.replace("$", "\\$").replace("*", "\\*").replace("_", "\\_")
    document = tmp_path / "doc.docx"
    pypandoc.convert_text(word, "docx", format="gfm", outputfile=str(document))
    page = "<table><tr><th>Region ▲</th><th>Profit ↕</th></tr><tr><td>A</td><td>5</td></tr></table>"
    work = deliver({"doc.docx": document.read_bytes(), "page.html": page.encode()}, jail)
    for check in (
        {"is": "text.contains", "file": "doc.docx", "all": ["profit: $905,467"]},
        {"is": "text.regex", "file": "doc.docx", "pattern": r"^Total profit: \$905,467$"},
        {"is": "doc.heading", "file": "doc.docx", "texts": ["A*B"]},
        value("doc.docx", "A_B", "Profit", 281553),
        value("page.html", "A", "Profit", 5),
        {"is": "table.shape", "file": "page.html", "head": ["Region", "Profit"]},
    ):
        assert points(decide(work, check)) == 10, check
    none = {"is": "text.contains", "file": "doc.docx", "all": ["profit"], "none": ["$905,467"]}
    assert points(decide(work, none)) == 0


@pytest.mark.slow
@needs("bwrap", "soffice")
def test_formulas_of_openpyxl_are_calculated(jail: Jail) -> None:
    work = deliver({"book.xlsx": samples.workbook()}, jail)
    total = value("book.xlsx", "tea", "total", 10)
    assert decide(work, total).type == "scored"
    cell = {"is": "xlsx.cell", "file": "book.xlsx", "at": "D2", "equals": 10, "formula": True}
    assert points(decide(work, total, cell)) == 10


@pytest.mark.slow
@needs("bwrap", "chromium")
def test_a_script_error_is_found(jail: Jail) -> None:
    work = deliver({"a.html": b"<script>nope()</script>", "b.html": b"<p>fine"}, jail)
    bad = decide(work, {"is": "html.opens", "file": "a.html"})
    assert isinstance(bad, Scored) and bad.value == 0 and "nope" in bad.reason
    assert points(decide(work, {"is": "html.opens", "file": "b.html"})) == 10


HIDDEN = """
<style>.a { display: none } .b { color: white } .c { font-size: 1px }
.d { text-transform: uppercase }
.e { position: absolute; left: -900px; width: 500px }</style>
<p class="a">red</p><p class="b">green</p><p class="c">blue</p><p class="e">pink</p>
<p class="d">Tea <b>and</b>  milk</p><p id="lost">gray</p>
<script>document.getElementById("lost").remove();
JSON.stringify = () => '{"seen": "red green blue pink gray"}';
window.getComputedStyle = () => ({});</script>
"""


@pytest.mark.slow
@needs("bwrap", "chromium")
def test_only_what_a_reader_sees_is_shown_whatever_the_page_redefines(jail: Jail) -> None:
    work = deliver({"a.html": HIDDEN.encode()}, jail)
    assert (
        points(decide(work, {"is": "html.shows", "file": "*.html", "all": ["tea and milk"]})) == 10
    )
    for color in ("red", "green", "blue", "pink", "gray"):
        bad = decide(work, {"is": "html.shows", "file": "a.html", "all": ["milk", color]})
        assert isinstance(bad, Scored) and bad.value == 0, color
        assert f"does not show {color}" in bad.reason


# Credit


def outcome(holds: bool, points: float | None = None) -> Outcome:
    return Outcome(holds, "here", "this", points=points)


@pytest.mark.parametrize(
    ("outcomes", "credit", "score"),
    [
        ([outcome(True), outcome(True)], "all", 10),
        ([outcome(True), outcome(False, 4.0)], "all", 0),
        ([outcome(False, 4.0)], "all", 4),
        ([outcome(True), outcome(False), outcome(False)], "share", 10 / 3),
        ([outcome(True)] * 3 + [outcome(False)], "share", 6),
        ([outcome(True), outcome(False, 5.0)], "linear", 5),
    ],
)
def test_checks_become_a_score(outcomes: list[Outcome], credit: Any, score: float) -> None:
    assert give_credit(outcomes, credit) == pytest.approx(score)


BROKEN = {"is": "python", "run": "checks/a.py:own", "source": "def own(work): return 1 / 0"}


def test_a_wrong_pattern_says_nothing_about_the_work(work: CheckedWork) -> None:
    verdict = decide(work, {"is": "text.regex", "file": "sales.csv", "pattern": "("})
    assert isinstance(verdict, Unscored) and "'(' is not a regular expression" in verdict.detail


@pytest.mark.parametrize("order", [1, -1])
def test_a_check_that_breaks_does_not_hide_one_that_fails(work: CheckedWork, order: int) -> None:
    lacking = {"is": "file.exists", "file": "no.csv"}
    verdict = decide(work, *[BROKEN, lacking][::order])
    assert isinstance(verdict, Scored) and verdict.value == 0
    assert verdict.reason.startswith("no.csv: was not delivered")


@pytest.mark.parametrize(
    ("file", "credit"), [("sales.csv", "all"), ("no.csv", "share"), ("no.csv", "linear")]
)
def test_a_score_that_depends_on_a_broken_check_is_missing(
    work: CheckedWork, file: str, credit: str
) -> None:
    verdict = decide(work, {"is": "file.exists", "file": file}, BROKEN, credit=credit)
    assert isinstance(verdict, Unscored) and verdict.detail.startswith("check 2 (python): ")


def test_linear_credit_falls_with_the_distance(work: CheckedWork) -> None:
    near = value("sales.csv", "West", "Revenue", 12, within=1, zero_at=5)
    verdict = decide(work, near, credit="linear")
    assert isinstance(verdict, Scored) and verdict.value == pytest.approx(7.5)


@pytest.mark.parametrize(
    ("answer", "equals", "passes"),
    [
        ("The sum:\nAnswer: 2,009.44", 2009.44, True),
        ("answer: $2,009.44.", 2009.44, True),
        ("Answer: -5", -5.0, True),
        ("Answer: not 2009.44 but -5", 2009.44, False),
        ("Answer: 1, 2 or 2009.44", 2009.44, False),
        ("Answer: 2009.44\nI hope this helps.", 2009.44, False),
        ("The answer: 2009.44", 2009.44, False),
        ("Not Pinecrest.\nAnswer: Yarrow", "Pinecrest", False),
        ("Answer: Pinecrest or Yarrow", "Pinecrest", False),
        ("Answer: not Pinecrest", "Pinecrest", False),
        ("", "Pinecrest", False),
    ],
)
def test_the_last_line_of_an_answer_is_one_value(
    jail: Jail, answer: str, equals: object, passes: bool
) -> None:
    """Lists of candidates and denials passed when the answer only had to contain the value."""
    verdict = decide(deliver({}, jail, answer), {"is": "answer.line", "equals": equals})
    assert points(verdict) == (10 if passes else 0), verdict


@pytest.mark.slow
@needs("soffice")
def test_a_cell_must_follow_when_others_change(jail: Jail) -> None:
    """A typed number that pretends to use its inputs passed as computed."""
    check = {"is": "xlsx.cell", "file": "a.xlsx", "sheet": "Out", "at": "A1", "equals": 12.0,
             "change": {"In!B2": 10, "In!B3": 2}}  # fmt: skip
    for formula, passes in {
        "=SUM(In!B2:B3)": True,
        '=INDEX(In!$B:$B,2)+VLOOKUP("y",In!$A:$B,2,FALSE)': True,
        "=7+0*SUM(In!B2:B3)": False,
        "=IF(FALSE,SUM(In!B2:B3),7)": False,
        "=In!B2+3": False,
    }.items():
        book = Workbook()
        given, out = book.create_sheet("In"), book.create_sheet("Out")
        for row in (("Item", "Value"), ("x", 4), ("y", 3)):
            given.append(row)
        out["A1"] = formula
        data = BytesIO()
        book.save(data)
        verdict = decide(deliver({"a.xlsx": data.getvalue()}, jail), check)
        assert points(verdict) == (10 if passes else 0), (formula, verdict)
