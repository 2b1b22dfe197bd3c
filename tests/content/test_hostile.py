"""Hostile files: a typed error or a clean result, in time, without network, without our files."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.content.docx import read_docx
from gta_bench.content.pdf import read_pdf
from gta_bench.content.pptx import read_pptx
from gta_bench.content.xlsx import read_xlsx
from gta_bench.errors import ToolError
from tests.content import samples
from tests.content.readers import words

SECONDS = 30.0
LAUGHS = "".join(
    f'<!ENTITY l{n} "{"".join(f"&l{n - 1};" for _ in range(10))}">' for n in range(1, 10)
)
LAUGH_TYPE = f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]>'
OUTSIDE_TYPE = '<!DOCTYPE x [<!ENTITY l9 SYSTEM "file://{file}">]>'


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < SECONDS


def outcome(name: str, data: bytes, jail: Jail) -> str:
    """The text of a file, or the words of the typed error; anything else fails the test."""
    try:
        return words(name, data, jail)
    except ToolError as exc:
        return f"ToolError: {exc}"


def with_entities(data: bytes, part: str, after: bytes, declaration: str) -> bytes:
    """An Office file in one part of which entities are declared, and one used after a mark."""
    parts = samples.unzipped(data)
    xml = parts[part]
    assert after in xml
    start = xml.index(b"?>") + 2 if xml.startswith(b"<?xml") else 0
    body = xml[start:].replace(after, after + b"&l9;", 1)
    return samples.zipped({**parts, part: xml[:start] + declaration.encode() + body})


CARRIERS = [
    ("a.xlsx", samples.calculated_workbook(), "xl/sharedStrings.xml", b"<t>"),
    ("a.xlsx", samples.workbook(), "xl/worksheets/sheet1.xml", b"<f>"),
    ("a.xlsx", samples.workbook(), "xl/workbook.xml", b"</sheets>"),
    ("a.pptx", samples.deck(), "ppt/slides/slide1.xml", b"<a:t>"),
    ("a.pptx", samples.deck(), "ppt/presentation.xml", b"</p:sldIdLst>"),
    ("a.docx", samples.docx(samples.paragraph("x")), "word/document.xml", b"<w:t>"),
]
IDS = [f"{name} {part.rpartition('/')[2]}" for name, _, part, _ in CARRIERS]


@pytest.mark.parametrize(("name", "data", "part", "after"), CARRIERS, ids=IDS)
def test_a_billion_laughs_stay_few(
    name: str, data: bytes, part: str, after: bytes, jail: Jail
) -> None:
    said = outcome(name, with_entities(data, part, after, LAUGH_TYPE), jail)
    assert said.count("lol") < 1000


@pytest.mark.parametrize(("name", "data", "part", "after"), CARRIERS, ids=IDS)
def test_no_file_outside_is_drawn_in(
    name: str, data: bytes, part: str, after: bytes, jail: Jail, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the-planted-secret", encoding="utf-8")
    declaration = OUTSIDE_TYPE.format(file=secret)
    said = outcome(name, with_entities(data, part, after, declaration), jail)
    assert "the-planted-secret" not in said


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.docx", samples.docx("")), ("a.xlsx", samples.workbook()), ("a.pptx", samples.deck())],
)
def test_a_bomb_in_an_office_file_is_refused_before_anybody_unpacks_it(
    name: str, data: bytes, jail: Jail
) -> None:
    packed = samples.bomb(samples.unzipped(data), 60)
    assert len(packed) < 200_000
    assert "unpacks to more than" in outcome(name, packed, jail)


def test_a_bomb_in_a_zip_in_a_zip_is_refused(jail: Jail) -> None:
    inner = samples.bomb({}, 100)
    assert "unpacks to more than" in outcome("a.zip", samples.zipped({"b.zip": inner}), jail)


@contextmanager
def listener() -> Iterator[tuple[int, list[str]]]:
    """A port of this machine, and who came to it."""
    hits: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        done = threading.Event()

        def accept() -> None:
            while not done.is_set():
                try:
                    connection, address = server.accept()
                except TimeoutError:
                    continue
                hits.append(str(address))
                connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1], hits
        finally:
            done.set()
            thread.join()


def picture_body(relation: str) -> str:
    return f"""<w:p><w:r><w:drawing xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/\
wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:pic=\
"http://schemas.openxmlformats.org/drawingml/2006/picture" xmlns:r="http://schemas.openxmlformats\
.org/officeDocument/2006/relationships"><wp:inline><wp:extent cx="9525" cy="9525"/><wp:docPr id="1"\
 name="p"/><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture">\
<pic:pic><pic:nvPicPr><pic:cNvPr id="0" name="p"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill>\
<a:blip r:link="{relation}" r:embed="{relation}"/></pic:blipFill><pic:spPr/></pic:pic>\
</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"""


def linked(targets: list[str]) -> str:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
    entries = "".join(
        f'<Relationship Id="r{n}" Type="{kind}" Target="{target}" TargetMode="External"/>'
        for n, target in enumerate(targets)
    )
    schema = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<?xml version="1.0"?><Relationships xmlns="{schema}">{entries}</Relationships>'


def test_a_document_that_names_pictures_elsewhere_fetches_none(
    jail: Jail, loopback: None, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(samples.image(9, 9))
    with listener() as (port, hits):
        targets = [f"http://127.0.0.1:{port}/a.png", f"file://{secret}", str(secret)]
        body = samples.paragraph("text") + "".join(picture_body(f"r{n}") for n in range(3))
        data = samples.docx(body, {"word/_rels/document.xml.rels": linked(targets)})
        content = asyncio.run(read_docx(data, jail))
    assert "text" in content.markdown
    assert hits == []
    assert content.pictures == 0


def test_a_deck_and_a_workbook_that_name_files_elsewhere_fetch_none(
    jail: Jail, loopback: None
) -> None:
    with listener() as (port, hits):
        target = f"http://127.0.0.1:{port}/a"
        deck = samples.unzipped(samples.deck())
        name = "ppt/slides/_rels/slide1.xml.rels"
        more = linked([target]).partition("<Relationship ")[2].partition("</Relationships>")[0]
        deck[name] = deck[name].replace(
            b"</Relationships>", f"<Relationship {more}</Relationships>".encode()
        )
        assert asyncio.run(read_pptx(samples.zipped(deck), jail)).slide_count == 3
        book = samples.unzipped(samples.workbook())
        sheet = "xl/worksheets/_rels/sheet1.xml.rels"
        asyncio.run(read_xlsx(samples.zipped({**book, sheet: linked([target])}), jail))
    assert hits == []


def test_a_paragraph_of_a_megabyte_is_read(jail: Jail) -> None:
    content = asyncio.run(read_docx(samples.docx(samples.paragraph("word " * 200_000)), jail))
    assert content.markdown.count("word") == 200_000


def test_deeply_nested_tables_end(jail: Jail) -> None:
    body = samples.paragraph("deep")
    for _ in range(400):
        body = f"<w:tbl><w:tr><w:tc>{body}</w:tc></w:tr></w:tbl>"
    assert outcome("a.docx", samples.docx(body), jail)


def test_deeply_nested_groups_end(jail: Jail) -> None:
    parts = samples.unzipped(samples.deck())
    name = "ppt/slides/slide1.xml"
    about = b'<p:nvGrpSpPr><p:cNvPr id="9" name="g"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>'
    nested = (b"<p:grpSp>" + about + b"<p:grpSpPr/>") * 3000 + b"</p:grpSp>" * 3000
    parts[name] = parts[name].replace(b"</p:spTree>", nested + b"</p:spTree>")
    assert "ToolError" in outcome("a.pptx", samples.zipped(parts), jail)


@pytest.mark.slow
def test_a_million_cells_are_read_in_part(jail: Jail) -> None:
    parts = samples.unzipped(samples.workbook())
    row = "".join(f"<c><v>{n}</v></c>" for n in range(50))
    rows = "".join(f"<row>{row}</row>" for _ in range(20_000))
    schema = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{schema}"><sheetData>{rows}</sheetData></worksheet>'
    parts["xl/worksheets/sheet1.xml"] = sheet.encode()
    parts["xl/media/noise.png"] = samples.noise(400)  # keeps the archive's ratio harmless
    content = asyncio.run(read_xlsx(samples.zipped(parts), jail))
    assert content.cut
    assert 10_000 < sum(len(sheet.cells) for sheet in content.sheets) <= 200_000


def test_a_pdf_of_a_thousand_pages_is_read_in_part(jail: Jail) -> None:
    data = samples.pdf([samples.words(f"This is page number {n}.") for n in range(1, 1001)])
    content = asyncio.run(read_pdf(data, jail))
    assert content.page_count == 1000
    assert content.pages[-1].text == f"This is page number {len(content.pages)}."
    assert "of 1000 pages were read" in content.as_text()


def test_pdf_pages_that_contain_each_other_end(jail: Jail) -> None:
    data = samples.pdf([samples.words("one")]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]")
    assert "ToolError" in outcome("a.pdf", data, jail)


def test_a_pdf_form_that_draws_itself_ends(jail: Jail) -> None:
    data = samples.pdf(["/X Do " + samples.words("Still some text here.")])
    form = b"/Resources << /XObject << /X 5 0 R >> "
    data = data.replace(b"/Resources << ", form).replace(
        b"<< /Length", b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] " + form + b">> /Length"
    )
    assert outcome("a.pdf", data, jail)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", samples.docx(samples.paragraph("x" * 5000))),
        ("a.xlsx", samples.calculated_workbook()),
        ("a.pptx", samples.deck()),
        ("a.png", samples.noise(50)),
        ("a.gif", samples.film(9)),
    ],
)
def test_truncated_files_are_refused_or_read_in_part(
    name: str, data: bytes, share: float, jail: Jail
) -> None:
    said = outcome(name, data[: int(len(data) * share)], jail)
    assert name == "a.gif" or said.startswith("ToolError")


def test_an_office_file_whose_parts_are_missing_is_refused(jail: Jail) -> None:
    for name, data in [("a.xlsx", samples.workbook()), ("a.pptx", samples.deck())]:
        kept = {"[Content_Types].xml": samples.unzipped(data)["[Content_Types].xml"]}
        assert "ToolError" in outcome(name, samples.zipped(kept), jail)
