"""Files that LibreOffice made: what other programs write is read as well as what ours write."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from gta_bench.confine.jail import Jail
from gta_bench.content.docx import read_docx
from gta_bench.content.pdf import read_pdf
from gta_bench.content.pptx import SlideTable, SlideText, read_pptx
from gta_bench.content.xlsx import read_xlsx
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("soffice")]

NAMESPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in [
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("style", "style"),
        ("draw", "drawing"),
        ("presentation", "presentation"),
        ("svg", "svg-compatible"),
        ("number", "datastyle"),
    ]
)


def flat(kind: str, body: str, extra: str = "") -> str:
    mime = f"application/vnd.oasis.opendocument.{kind}"
    tag = {"text": "text", "spreadsheet": "spreadsheet", "presentation": "presentation"}[kind]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {NAMESPACES} '
        f'xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" office:version="1.2" '
        f'office:mimetype="{mime}">{extra}<office:body>'
        f"<office:{tag}>{body}</office:{tag}></office:body></office:document>"
    )


def table(rows: list[list[str]]) -> str:
    cells = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in rows
    )
    columns = f'<table:table-column table:number-columns-repeated="{len(rows[0])}"/>'
    return f'<table:table table:name="T">{columns}{cells}</table:table>'


def converted(folder: Path, source: str, suffix: str, target: str) -> bytes:
    """A flat OpenDocument file, saved by LibreOffice as something else."""
    (folder / f"a{suffix}").write_text(source, encoding="utf-8")
    profile = f"-env:UserInstallation=file://{folder}/profile"
    argv = ["soffice", profile, "--headless", "--convert-to", target, "--outdir", str(folder)]
    subprocess.run(
        [*argv, str(folder / f"a{suffix}")], check=True, timeout=120, capture_output=True
    )
    return (folder / f"a.{target}").read_bytes()


DOCUMENT = flat(
    "text",
    '<text:h text:outline-level="1">Bericht 报告</text:h>'
    "<text:p>Plain &lt;text&gt; &amp; more.</text:p>"
    "<text:list><text:list-item><text:p>outer</text:p><text:list><text:list-item><text:p>inner"
    "</text:p></text:list-item></text:list></text:list-item></text:list>"
    + table([["name", "value"], ["tea", "7"], ["茶", "007"]]),
)


def test_a_word_document_of_libreoffice(tmp_path: Path, jail: Jail) -> None:
    text = asyncio.run(read_docx(converted(tmp_path, DOCUMENT, ".fodt", "docx"), jail)).markdown
    assert text.startswith("# Bericht 报告\n\nPlain \\<text\\> & more.\n\n- outer\n")
    assert "- inner" in text
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if "|" in line
    ]
    assert ["name", "value"] in rows
    assert ["茶", "007"] in rows


def test_a_pdf_file_of_libreoffice(tmp_path: Path, jail: Jail) -> None:
    content = asyncio.run(read_pdf(converted(tmp_path, DOCUMENT, ".fodt", "pdf"), jail))
    words = content.pages[0].text.split()
    assert {"Bericht", "报告", "<text>", "outer", "inner", "007"} <= set(words)
    assert content.pages[0].origin == "text"


SHEETS = flat(
    "spreadsheet",
    """<table:table table:name="First"><table:table-row>
    <table:table-cell table:number-columns-spanned="2" office:value-type="string">
    <text:p>wide</text:p></table:table-cell><table:covered-table-cell/></table:table-row><table:table-row>
    <table:table-cell office:value-type="float" office:value="2.5"/>
    <table:table-cell office:value-type="float" office:value="4"/>
    <table:table-cell table:formula="of:=[.A2]*[.B2]" office:value-type="float" office:value="10"/>
    <table:table-cell table:formula="of:=1/0"/>
    <table:table-cell office:value-type="string"><text:p>007</text:p></table:table-cell>
    <table:table-cell office:value-type="boolean" office:boolean-value="true"/>
    <table:table-cell table:style-name="day" office:value-type="date"
    office:date-value="2026-05-19"/>
    </table:table-row></table:table><table:table table:name="第二"><table:table-row>
    <table:table-cell office:value-type="string"><text:p>second</text:p></table:table-cell>
    </table:table-row></table:table>""",
    """<office:automatic-styles><number:date-style style:name="iso">
    <number:year number:style="long"/>
    <number:text>-</number:text><number:month number:style="long"/><number:text>-</number:text>
    <number:day number:style="long"/></number:date-style><style:style style:name="day"
    style:family="table-cell" style:data-style-name="iso"/></office:automatic-styles>""",
)


def test_a_workbook_of_libreoffice(tmp_path: Path, jail: Jail) -> None:
    content = asyncio.run(read_xlsx(converted(tmp_path, SHEETS, ".fods", "xlsx"), jail))
    first, second = content.sheets
    assert (first.name, second.name) == ("First", "第二")
    assert first.merged == ("A1:B1",)
    cells = {cell.address: (cell.value, cell.type, cell.formula) for cell in first.cells}
    assert cells["A1"] == ("wide", "text", None)
    assert cells["A2"] == ("2.5", "number", None)
    assert cells["C2"] == ("10", "number", "=A2*B2")
    assert cells["D2"] == ("#DIV/0!", "error", "=1/0")
    assert cells["E2"] == ("007", "text", None)
    assert cells["F2"][0] in ("TRUE", "1")
    assert cells["G2"][:2] == ("2026-05-19", "date")
    assert [cell.value for cell in second.cells] == ["second"]


PAGE = (
    '<draw:page draw:name="one" draw:master-page-name="m">'
    '<draw:frame svg:width="10cm" svg:height="2cm" svg:x="1cm" svg:y="1cm"><draw:text-box>'
    "<text:p>Free text 文字</text:p></draw:text-box></draw:frame>"
    '<draw:g><draw:frame svg:width="5cm" svg:height="2cm" svg:x="1cm" svg:y="4cm"><draw:text-box>'
    "<text:p>grouped</text:p></draw:text-box></draw:frame>"
    '<draw:frame svg:width="5cm" svg:height="2cm" svg:x="7cm" svg:y="4cm"><draw:text-box>'
    "<text:p>too</text:p></draw:text-box></draw:frame></draw:g>"
    '<draw:frame svg:width="10cm" svg:height="3cm" svg:x="1cm" svg:y="8cm">'
    + table([["a", "b"], ["1", "2"]])
    + "</draw:frame><presentation:notes><draw:frame presentation:class='notes' "
    "svg:width='10cm' svg:height='5cm' svg:x='1cm' svg:y='1cm'><draw:text-box><text:p>the notes"
    "</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
)
MASTER = (
    "<office:automatic-styles><style:page-layout style:name='p'/></office:automatic-styles>"
    "<office:master-styles><style:master-page style:name='m' style:page-layout-name='p'/>"
    "</office:master-styles>"
)


def test_a_deck_of_libreoffice(tmp_path: Path, jail: Jail) -> None:
    data = converted(tmp_path, flat("presentation", PAGE, MASTER), ".fodp", "pptx")
    slide = asyncio.run(read_pptx(data, jail)).slides[0]
    texts = [part.text for part in slide.parts if isinstance(part, SlideText)]
    assert texts == ["Free text 文字", "grouped", "too"]
    tables = [part.rows for part in slide.parts if isinstance(part, SlideTable)]
    assert tables == [(("a", "b"), ("1", "2"))]
    assert slide.notes == "the notes"
